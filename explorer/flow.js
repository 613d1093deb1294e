// The followed token's path through the layers: how much attention it gives each token in each layer, animated or by
// steps.
const PACE = 1400; // milliseconds per layer
const WHOLE = 18; // pixels, the combined width of all attention weights

const SVG = "http://www.w3.org/2000/svg";

function drawing(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function makeFlow() {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const part = { depth: 0, weights: [], text: stop, follow, show, play, stop };
  let playing = null;

  function follow() {
    part.weights = Array.from({ length: L }, (_, layer) => meanWeights(followed.token, layer));
    draw();
  }

  function draw() {
    const { tokens } = shown,
      { token } = followed,
      line = 24,
      left = 96;
    const wide = Math.max(34, Math.min(76, (by("ways").clientWidth - left - 20) / L)); // text keeps its size on a phone
    const x = (depth) => left + 8 + depth * wide,
      y = (row) => 16 + row * line,
      height = y(tokens.length - 1) + 34;
    const ribbons = part.weights.slice(0, part.depth).flatMap((weights, layer) => {
      const [from, to, middle] = [x(layer), x(layer + 1), x(layer) + wide / 2];
      let stacked = y(token) - WHOLE / 2; // the ribbons end one below the other, because the weights sum to 1
      return [...weights].map((weight, row) => {
        const width = WHOLE * weight,
          top = y(row) - width / 2,
          end = stacked;
        stacked += width;
        const path = drawing("path", {
          d:
            `M${from},${top} C${middle},${top} ${middle},${end} ${to},${end} V${stacked} ` +
            `C${middle},${stacked} ${middle},${top + width} ${from},${top + width} Z`,
          "data-ends": `${end - y(token)} ${stacked - y(token)}`,
          class: layer === part.depth - 1 ? "now" : "past",
        });
        path.append(drawing("title", {}, `layer ${layer}: ${placed(row)} → ${placed(token)} ${written(weight, 3)}`));
        return path;
      });
    });
    const names = tokens.map((name, row) =>
      drawing(
        "text",
        { x: left - 4, y: y(row) + 4, class: row === token ? "name chosen" : "name" },
        name.length > 12 ? `${name.slice(0, 11)}…` : name,
      ),
    );
    const dots = tokens.flatMap((_, row) =>
      Array.from({ length: L + 1 }, (__, depth) =>
        drawing("circle", {
          cx: x(depth),
          cy: y(row),
          r: row === token && depth <= part.depth ? 5 : 2,
          class: row === token && depth <= part.depth ? "own" : "",
        }),
      ),
    );
    const stream = drawing("rect", {
      x: x(0),
      width: x(part.depth) - x(0),
      y: y(token) - WHOLE / 2,
      height: WHOLE,
      class: "stream",
    });
    const depths = Array.from({ length: L + 1 }, (_, depth) =>
      drawing("text", { x: x(depth), y: height - 6, class: "depth" }, String(depth)),
    );
    const words = sentence();
    const picture = drawing(
      "svg",
      { viewBox: `0 0 ${x(L) + 12} ${height}`, role: "img", "aria-label": words },
      stream,
      ...ribbons,
      ...dots,
      ...names,
      ...depths,
    );
    by("ways").replaceChildren(picture);
    by("flow-words").textContent = words;
    by("flow-back").disabled = part.depth === 0;
    by("flow-on").disabled = part.depth === L;
    by("flow-play").textContent = playing ? "Pause" : part.depth === L ? "Play again" : "Play";
    by("flow-play").hidden = still.matches;
  }

  function sentence() {
    const { token } = followed,
      { tokens } = shown,
      layer = part.depth - 1;
    if (layer < 0) return `${quoted(token)} comes in as its embedding, and no layer has been passed yet.`;
    const row = part.weights[layer],
      order = tokens.map((_, i) => i).sort((a, b) => row[b] - row[a]);
    const most = order.slice(0, 3).map((i) => `${i === token ? "itself" : quoted(i)} (${written(row[i])})`);
    return (
      `Layer ${layer}: on average over its ${A} heads, ${quoted(token)} looks most at ${most.join(", ")}. ` +
      `The vector that attention adds is ${written(addedBy(token, layer))} times as long as the one that came in, ` +
      "which goes on."
    );
  }

  function show(depth) {
    part.depth = Math.max(0, Math.min(L, depth));
    draw();
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    show(part.depth);
  }

  function play() {
    if (part.depth === L) part.depth = 0;
    playing = setInterval(() => {
      if (part.depth + 1 >= L) stop();
      show(part.depth + 1);
    }, PACE);
    show(part.depth + 1);
  }

  by("flow-back").onclick = () => {
    stop();
    show(part.depth - 1);
  };
  by("flow-on").onclick = () => {
    stop();
    show(part.depth + 1);
  };
  by("flow-play").onclick = () => (playing ? stop() : play());
  return part;
}
