// Ribbons from one token of a sentence to every token, for the sentence view and the explorer.

// The path and the breadth of each ribbon. The tokens are at the places `at` along the sentence; the ribbons begin
// around `from`, the place of `token`, are `whole` wide together, and rise up to `high`. `point` turns a place along
// the sentence, and a distance from it, into coordinates. `outline` is the path of both edges.
export function ribbonPaths(shares, token, { at, from, whole, high }, point) {
  const span = Math.max(...at.map((x) => Math.abs(x - from)), 1),
    paths = [];
  const inOrder = at
    .map((_, i) => i)
    .filter((i) => i !== token)
    .sort((a, b) => at[b] - at[a]);
  const before = inOrder.filter((i) => at[i] < from),
    after = inOrder.filter((i) => at[i] >= from);
  let start = from - whole / 2;
  for (const i of [...before, token, ...after]) {
    // on each side the nearest first: they do not cross
    const breadth = whole * shares[i],
      s = start + breadth / 2,
      t = i === token ? s : at[i];
    const far = (high / 0.75) * (i === token ? 0.2 : Math.min(1, 0.15 + (0.85 * Math.abs(t - s)) / span));
    // an edge that is `out` of the middle on both sides rises by as much more
    const curve = (out) => {
      const [from, to, rise] = t < s ? [s + out, t - out, far + out / 0.75] : [s - out, t + out, far + out / 0.75];
      return `M${point(from, 0)}C${point(from, rise)} ${point(to, rise)} ${point(to, 0)}`;
    };
    paths[i] = { d: curve(0), outline: curve(-breadth / 2) + curve(breadth / 2), breadth };
    start += breadth;
  }
  return paths;
}
