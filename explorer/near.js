// Why two sentences are near: the cosine of their vectors is a sum with one term, a share, for each pair of tokens.

function makeNear() {
  const columns = [by("near-left"), by("near-right")],
    part = { draw, shares: [] };
  let now = {},
    chosen = [];

  function draw(sides, shares, cosine) {
    const count = sides[1].length,
      rows = Math.max(sides[0].length, count),
      palette = colours();
    const pairs = ranked(sides[0].map((_, i) => shares.subarray(i * count, (i + 1) * count))),
      drawn = pairs.slice(0, MOST_LINES);
    const total = ([i, j]) => pairs.reduce((sum, pair) => sum + (isMeant(pair, { i, j }) ? pair.share : 0), 0);
    part.shares = shares;
    chosen = [];
    columns.forEach((column, side) => {
      const buttons = sides[side].map((token, at) => {
        const only = side ? [undefined, at] : [at],
          sum = total(only);
        const button = radio(
          `${token}, ${written(sum, 3)} of the cosine`,
          element("span", {}, token),
          element("small", {}, written(sum)),
        );
        point(button, only);
        return button;
      });
      makeChoice(column, buttons, 1, (at) => {
        chosen[side] = at;
        tell(chosen);
      });
    });
    const y = (side, at) => (rows - sides[side].length) / 2 + at + 0.5;
    const lines = drawn.map((pair) => {
      const { i, j, share } = pair;
      const line = drawing("line", {
        x1: 0,
        x2: 100,
        y1: y(0, i),
        y2: y(1, j),
        class: share < 0 ? "minus" : "",
        stroke: rgb(colour(Math.sign(share), 1.25, palette)),
        "stroke-width": thickness(pair, drawn[0]),
      });
      point(line, [i, j]);
      return line;
    });
    const picture = drawing(
      "svg",
      { viewBox: `0 0 100 ${rows}`, preserveAspectRatio: "none", "aria-hidden": true },
      ...lines,
    );
    picture.style.height = `${30 * rows}px`;
    by("near-lines").replaceChildren(picture);
    now = { sides, pairs, cosine, drawn, lines, total };
    tell(chosen);
  }

  function point(target, tokens) {
    target.onpointerenter = () => tell(tokens);
    target.onpointerleave = () => tell(chosen);
  }

  // Highlight the lines of a token, of a pair or of all pairs, and put their share into a sentence
  function tell(selected) {
    const { sides, pairs, cosine, drawn, lines, total } = now,
      [i, j] = selected,
      sum = written(total(selected), 3),
      of = `${sum} of the cosine ${written(cosine, 3)}.`;
    const asked = selected.some((at) => at !== undefined);
    lines.forEach((line, rank) =>
      line.classList.toggle("dim", asked ? !isMeant(drawn[rank], { i, j }) : rank >= STRONG),
    );
    columns.forEach((column, side) => {
      mark(column, selected[side]);
      column.children[selected[side] ?? 0].tabIndex = 0;
    });
    const named = selected
      .map((at, side) => `“${sides[side][at]}”`)
      .filter((_, side) => selected[side] !== undefined)
      .join(" with ");
    const single = i === undefined || j === undefined,
      most = drawn.find((pair) => isMeant(pair, { i, j }));
    const rest = pairs.length - drawn.length;
    if (!named)
      by("near-words").textContent =
        `All ${pairs.length} shares add up to ${sum}, and the cosine is ${written(cosine, 3)}. The largest: ${drawn
          .slice(0, STRONG)
          .map((pair) => `“${sides[0][pair.i]}” with “${sides[1][pair.j]}” ${written(pair.share, 3)}`)
          .join(", ")}.${rest ? ` The ${rest} smallest have no line.` : ""}`;
    else if (single) {
      const partner = most && (i === undefined ? sides[0][most.i] : sides[1][most.j]);
      by("near-words").textContent =
        `${named} with all tokens of the other sentence: ${of}` +
        (most ? ` Most of it with “${partner}”, ${written(most.share, 3)}.` : "");
    } else by("near-words").textContent = `${named}: ${of}`;
  }

  by("near-all").onclick = () => {
    chosen = [];
    tell(chosen);
  };
  return part;
}
