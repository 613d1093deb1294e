// A query and keys as arrows: their dot products, the softmax of them, and the average of the values.

explain(
  "Drag an arrow's head, or move to it with Tab and use the arrow keys. Turn the query towards a key, " +
  "and the score of that key grows; make the query longer, and the largest weight grows.",
);

const { names, asking } = data, apart = data.values !== null; // whether values are arrows of their own
const state = { query: data.query, keys: data.keys, values: data.values ?? data.keys, scaled: true, simple: false };
const most = Math.max(...[state.query, ...state.keys, ...state.values].flat().map(Math.abs));
const reach = 5 * 2 ** Math.max(0, Math.ceil(Math.log2(most / 4.5))), unit = reach / 5;

const row = add(figure, "div", { class: "row" });
const svg = add(row, "svg", {
  viewBox: [-reach, -reach, 2 * reach, 2 * reach], role: "group", style: "max-width: 460px",
  "aria-label": "A query, keys and the average of the values, as arrows in the plane",
});
for (let at = -5; at <= 5; at++) {
  const line = `M${at * unit} ${-reach}V${reach}M${-reach} ${at * unit}H${reach}`;
  add(svg, "path", { d: line, fill: "none", stroke: at ? "var(--faint)" : "var(--line)", "stroke-width": 0.03 * unit });
}
const hull = add(svg, "path", { fill: "var(--average)", "fill-opacity": 0.1 });
const context = add(svg, "path", { stroke: "var(--average)", "stroke-width": 0.12 * unit, fill: "none" });
const tip = add(svg, "circle", { r: 0.2 * unit, fill: "var(--average)" });

function arrow(name, colour, get, put) {
  const line = add(svg, "path", { stroke: colour, "stroke-width": 0.09 * unit, fill: "none" });
  const text = add(svg, "text", { "text-anchor": "middle", "font-size": 0.42 * unit, style: `pointer-events: none; fill: ${colour}` }, name);
  const edge = 4.8 * unit, within = (number) => Math.max(-edge, Math.min(edge, number));
  const moved = (point) => { put(point.map(within)); draw(); };
  const head = handle(svg, name, colour, { size: 0.26 * unit, step: unit / 10, moved });
  return {
    text,
    hide(hidden) { for (const part of [line, text, head]) part.style.display = hidden ? "none" : ""; },
    draw() {
      const [x, y] = get();
      line.setAttribute("d", `M0 0L${x} ${-y}`);
      head.put([x, y]);
      const middle = Math.max(-reach + 1.4 * unit, Math.min(reach - 1.4 * unit, x));
      set(text, { x: middle, y: -y + (y > 0 ? -0.45 : 0.8) * unit });
    },
  };
}

const keys = names.map((name, i) =>
  arrow(`key of ${name}`, "var(--key)", () => state.keys[i], (point) => { state.keys[i] = point; }));
const values = !apart ? [] : names.map((name, i) =>
  arrow(`value of ${name}`, "var(--value)", () => state.values[i], (point) => { state.values[i] = point; }));
const query = arrow(`query of ${names[asking]}`, "var(--query)", () => state.query, (point) => { state.query = point; });
svg.append(context, tip, ...[...keys, ...values, query].map((one) => one.text)); // over the arrows
for (const part of [context, tip, hull]) part.style.pointerEvents = "none"; // a head may lie under them

const side = add(row, "div");
const cells = table(side, ["key of", "query · key", "score", "e^score", "weight", ""], names);
const bars = cells.map((row) => {
  row[4].className = "track";
  return add(row[4], "span", { class: "bar" });
});
add(side, "p", {}, "Each weight is its e^score, divided by the sum of that column.");
const result = add(side, "p");
const average = [0, 1].map((at) => add(result, "span", { class: `average-${"xy"[at]}` }));
average[0].before("Average of the values: (");
average[0].after(", ");
result.append(")");
side.append(document.getElementById("say"));
const controls = add(side, "div", { class: "controls" });
tick(controls, "divide by √D (here √2)", state.scaled, (on) => { state.scaled = on; draw(); });
tick(controls, "query = key = value", state.simple, (on) => { state.simple = on; draw(); });

function draw() {
  const asks = state.simple ? state.keys[asking] : state.query, carried = state.simple || !apart ? state.keys : state.values;
  const products = state.keys.map((key) => dot(asks, key));
  const scores = products.map((product) => (state.scaled ? product / Math.SQRT2 : product)), weights = softmax(scores);
  const mean = [0, 1].map((at) => dot(weights, carried.map((value) => value[at])));
  [...keys, ...values, query].forEach((one) => one.draw());
  query.hide(state.simple);
  values.forEach((one) => one.hide(state.simple));
  names.forEach((_, i) => {
    [products, scores, scores.map(Math.exp), weights].forEach((numbers, column) => show(cells[i][column], numbers[i]));
    stretch(bars[i], weights[i]);
  });
  average.forEach((element, at) => show(element, mean[at]));
  context.setAttribute("d", `M0 0L${mean[0]} ${-mean[1]}`);
  set(tip, { cx: mean[0], cy: -mean[1] });
  hull.setAttribute("d", `M${outline(carried).map(([x, y]) => `${x} ${-y}`).join("L")}Z`);
  const best = largest(weights), equal = Math.max(...weights) - Math.min(...weights) < 0.005;
  const most = equal ? "divides its attention evenly" : `gives ${percent(weights[best])} of its attention to “${names[best]}”`;
  const simple = state.simple ? " Its query is now its own key, so it looks for what points the same way as itself." : "";
  const carries = apart && !state.simple ? "values" : "values, which are the keys here";
  say(`“${names[asking]}” ${most}.${simple} The green arrow is the average of the ${carries}, taken with these ` +
    "weights: it never leaves the shaded area between them.");
}

// The points around all others, in order (Andrew's monotone chain).
function outline(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (ordered) => ordered.reduce((kept, point) => {
    const turns = ([a, b], [c, d], [e, f]) => (c - a) * (f - b) - (d - b) * (e - a);
    while (kept.length > 1 && turns(kept.at(-2), kept.at(-1), point) <= 0) kept.pop();
    return [...kept, point];
  }, []);
  return [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
}

draw();
