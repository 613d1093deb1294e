// Why two sentences are near: the cosine of their vectors is a sum, in which each pair of tokens has a share.
const MOST_LINES = 80, STRONG = 3; // that are drawn, and that stand out while nothing is chosen

// Of token vectors (S, H) and (T, H) with the means a and b, as `shares_of_cosine` in notebook 09
function sharesOf(one, other, a, b) {
  const length = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  const whole = (one.length / H) * (other.length / H) * length(a) * length(b);
  return product(one, other, H).map((value) => value / whole);
}

function makeNear() {
  const columns = [by("near-left"), by("near-right")], part = { draw, shares: [] };
  let now = {}, chosen = [];

  function draw(sides, shares, cosine) {
    const count = sides[1].length, rows = Math.max(sides[0].length, count), palette = colours();
    const places = [...shares.keys()].map((cell) => [Math.floor(cell / count), cell % count]);
    const total = (wanted) => shares.reduce((sum, share, cell) => sum + (fits(places[cell], wanted) ? share : 0), 0);
    const order = [...shares.keys()].sort((a, b) => Math.abs(shares[b]) - Math.abs(shares[a])).slice(0, MOST_LINES);
    part.shares = shares;
    chosen = [];
    columns.forEach((column, side) => {
      const buttons = sides[side].map((token, at) => {
        const only = side ? [undefined, at] : [at], sum = total(only);
        const button = radio(`${token}, ${written(sum, 3)} of the cosine`, element("span", {}, token), element("small", {}, written(sum)));
        point(button, only);
        return button;
      });
      makeChoice(column, buttons, 1, (at) => {
        chosen[side] = at;
        tell(chosen);
      });
    });
    const y = (side, at) => (rows - sides[side].length) / 2 + at + 0.5;
    const lines = order.map((cell) => {
      const [i, j] = places[cell], share = shares[cell];
      const line = drawing("line", {
        x1: 0, x2: 100, y1: y(0, i), y2: y(1, j), class: share < 0 ? "minus" : "", stroke: rgb(colour(Math.sign(share), 1.25, palette)),
        "stroke-width": Math.max(0.4, (9 * Math.abs(share)) / Math.abs(shares[order[0]])),
      });
      point(line, [i, j]);
      return line;
    });
    const picture = drawing("svg", { viewBox: `0 0 100 ${rows}`, preserveAspectRatio: "none", "aria-hidden": true }, ...lines);
    picture.style.height = `${30 * rows}px`;
    by("near-lines").replaceChildren(picture);
    now = { sides, shares, cosine, order, places, lines, total };
    tell(chosen);
  }

  const fits = (place, wanted) => place.every((at, side) => (wanted[side] ?? at) === at);

  function point(target, wanted) {
    target.onpointerenter = () => tell(wanted);
    target.onpointerleave = () => tell(chosen);
  }

  // The share of a token, of a pair, or of all of them: its lines, and its number in words
  function tell(wanted) {
    const { sides, shares, cosine, order, places, lines, total } = now, sum = written(total(wanted), 3), of = `${sum} of the cosine ${written(cosine, 3)}.`;
    const asked = wanted.some((at) => at !== undefined);
    lines.forEach((line, rank) => line.classList.toggle("dim", asked ? !fits(places[order[rank]], wanted) : rank >= STRONG));
    columns.forEach((column, side) => {
      mark(column, wanted[side]);
      column.children[wanted[side] ?? 0].tabIndex = 0;
    });
    const named = wanted.map((at, side) => `“${sides[side][at]}”`).filter((_, side) => wanted[side] !== undefined).join(" with ");
    const single = wanted[0] === undefined || wanted[1] === undefined, most = order.find((cell) => fits(places[cell], wanted));
    const other = wanted[0] === undefined ? 0 : 1, rest = shares.length - order.length;
    if (!named) by("near-words").textContent = `All ${shares.length} shares add up to ${sum}, and the cosine is ${written(cosine, 3)}. The largest: ${order.slice(0, STRONG).map((cell) => `“${sides[0][places[cell][0]]}” with “${sides[1][places[cell][1]]}” ${written(shares[cell], 3)}`).join(", ")}.${rest ? ` The ${rest} smallest have no line.` : ""}`;
    else if (single) by("near-words").textContent = `${named} with all tokens of the other sentence: ${of}${most === undefined ? "" : ` Most of it with “${sides[other][places[most][other]]}”, ${written(shares[most], 3)}.`}`;
    else by("near-words").textContent = `${named}: ${of}`;
  }

  by("near-all").onclick = () => {
    chosen = [];
    tell(chosen);
  };
  return part;
}
