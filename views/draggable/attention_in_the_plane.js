// A query and keys as arrows: their dot products, the softmax of them, and the average of the values.

import { arrowhead, clamp, covered, largest, percent, pointing, shaft } from "../numbers.js";
import { add, by, letterSize, set } from "../elements.js";
import {
  data,
  explain,
  figure,
  glide,
  handle,
  keepChoices,
  makeRoom,
  redraw,
  say,
  show,
  stretch,
  table,
  tick,
} from "./figure.js";
import { attend, flatten, makeCompute } from "./compute/attention_in_the_plane.js";

explain(
  "Drag an arrow's head, or move it with the arrow keys: turn the query towards a key, and that key's score grows; " +
    "make the query longer, and the largest weight grows.",
);

const { names, asking } = data,
  apart = data.values !== null; // whether values are arrows of their own
const state = { query: data.query, keys: data.keys, values: data.values ?? data.keys, scaled: true, simple: false };
const compute = makeCompute(data);

const most = Math.max(...[state.query, ...state.keys, ...state.values].flat().map(Math.abs));
const reach = 5 * 2 ** Math.max(0, Math.ceil(Math.log2(most / 4.5))),
  unit = reach / 5,
  size = 0.26 * unit;

const row = add(figure, "div", { class: "row" });
const svg = add(row, "svg", {
  viewBox: [-reach, -reach, 2 * reach, 2 * reach],
  role: "group",
  style: "max-width: 460px",
  "aria-label": "A query, keys and the average of the values, as arrows in the plane",
});
for (let at = -5; at <= 5; at++) {
  const line = `M${at * unit} ${-reach}V${reach}M${-reach} ${at * unit}H${reach}`;
  add(svg, "path", { d: line, fill: "none", stroke: at ? "var(--faint)" : "var(--line)", "stroke-width": 0.03 * unit });
}
const drawn = (stroke, width, more = {}) =>
  add(svg, "path", { stroke, "stroke-width": width * unit, fill: "none", ...more });
const hull = add(svg, "path", { fill: "var(--average)", "fill-opacity": 0.1 });
const ghosts = ["query", "average"].map((name) =>
  drawn(`var(--${name})`, 0.07, { "stroke-dasharray": unit / 6, opacity: 0.5 }),
);
const feet = names.map(() => ({
  // how far the query goes along a key, where it goes its way
  down: drawn("var(--query)", 0.03, { "stroke-dasharray": unit / 10 }),
  along: drawn("var(--key)", 0.22, { opacity: 0.4 }),
}));
const context = drawn("var(--average)", 0.13),
  tip = add(svg, "path", { d: arrowhead(1.25 * size), fill: "var(--average)" });
const write = (name, colour) =>
  add(svg, "text", { "text-anchor": "middle", style: `pointer-events: none; fill: ${colour}` }, name);
const told = write("average", "var(--average)"),
  start = write("", "var(--soft)");

// An arrow whose point is owner[key].
function arrow(name, colour, owner, key) {
  const line = drawn(colour, 0.09),
    text = write(name, colour);
  const edge = 4.8 * unit,
    is = () => owner[key];
  const moved = (point) => {
    owner[key] = point.map((number) => clamp(number, -edge, edge));
    draw();
  };
  const head = handle(svg, name, colour, { size, step: unit / 10, is, moved });
  return {
    text,
    hide(hidden) {
      for (const part of [line, text, head]) part.style.display = hidden ? "none" : "";
      text.textContent = hidden ? "" : name;
    },
    draw(point) {
      this.point = point;
      line.setAttribute("d", shaft(point, size));
      head.put(point);
    },
  };
}

const keys = names.map((name, i) => arrow(`key of ${name}`, "var(--key)", state.keys, i));
const values = !apart ? [] : names.map((name, i) => arrow(`value of ${name}`, "var(--value)", state.values, i));
const query = arrow(`query of ${names[asking]}`, "var(--query)", state, "query");
svg.append(context, tip, told, start, ...[...keys, ...values, query].map((one) => one.text)); // over the arrows
// heads may be under them, and must stay draggable
for (const part of [context, tip, hull, ...ghosts, ...feet.flatMap(Object.values)]) part.style.pointerEvents = "none";

const side = add(row, "div");
const cells = table(side, ["key of", "query · key", "score", "e^score", "weight", ""], names);
const bars = cells.map((row) => {
  row[4].className = "track";
  return add(row[4], "span", { class: "bar" });
});
add(
  side,
  "p",
  {},
  "Each weight is its e^score, divided by the sum of that column. The query's foot on a key (dashed), times the " +
    "key's length, is query · key.",
);
const result = add(side, "p", { style: "color: var(--average)" });
const average = [0, 1].map((at) => add(result, "span", { class: `average-${"xy"[at]}` }));
average[0].before("Average of the values: (");
average[0].after(", ");
result.append(")");
side.append(by("say"));
const controls = add(side, "div", { class: "controls" });
tick(controls, "divide by √D (here √2)", state.scaled, (on) => {
  state.scaled = on;
  draw();
});
tick(controls, "query = key = value", state.simple, (on) => {
  state.simple = on;
  draw();
});
let first = null; // where the query and the average began

function draw() {
  const { weights } = compute(state);
  query.hide(state.simple);
  values.forEach((one) => one.hide(state.simple));
  glide(state, flatten(data, state), picture);
  const best = largest(weights),
    equal = Math.max(...weights) - Math.min(...weights) < 0.005;
  const most = equal
    ? "divides its attention evenly"
    : `gives ${percent(weights[best])} of its attention to “${names[best]}”`;
  const simple = state.simple
    ? " Its query is now its own key, so it looks for keys that point the same way as itself."
    : "";
  const carries = apart && !state.simple ? "values" : "values, which are the keys here";
  say(
    `“${names[asking]}” ${most}.${simple} The green arrow is the average of the ${carries}, taken with these ` +
      "weights: it never leaves the shaded area between them.",
  );
}

function picture(numbers) {
  const { asks, offers, carried, products, scores, powers, weights, mean } = attend(data, numbers);
  first ??= [asks, mean];
  query.draw(asks);
  keys.forEach((one, i) => one.draw(offers[i]));
  values.forEach((one, i) => one.draw(carried[i]));
  names.forEach((_, i) => {
    [products, scores, powers, weights].forEach((column, at) => show(cells[i][at], column[i]));
    stretch(bars[i], weights[i]);
    const [x, y] = offers[i],
      share = Math.max(0, products[i]) / (x * x + y * y || 1),
      foot = [share * x, share * y];
    feet[i].down.setAttribute("d", share ? `M${asks[0]} ${-asks[1]}L${foot[0]} ${-foot[1]}` : "");
    feet[i].along.setAttribute("d", `M0 0L${foot[0]} ${-foot[1]}`);
  });
  average.forEach((element, at) => show(element, mean[at]));
  context.setAttribute("d", shaft(mean, 1.25 * size));
  tip.setAttribute("transform", pointing(...mean));
  const left = Math.hypot(first[0][0] - asks[0], first[0][1] - asks[1]) > 0.6 * unit;
  ghosts.forEach((ghost, i) => set(ghost, { d: shaft(first[i], 0), visibility: left ? "visible" : "hidden" }));
  start.textContent = left ? "start" : "";
  hull.setAttribute(
    "d",
    `M${outline(carried)
      .map(([x, y]) => `${x} ${-y}`)
      .join("L")}Z`,
  );
  place(mean);
}

// Each label is beyond its arrow's head, as far as there is room; no label covers a head, or the query's line.
const along = ([x, y]) => [0.4, 0.55, 0.7, 0.85].map((share) => [share * x, share * y]);
function place(mean) {
  const high = letterSize(svg),
    shown = [...keys, ...values, query].filter((one) => one.text.textContent);
  const beyond = (element, [x, y]) => {
    const long = Math.hypot(x, y) || 1,
      wide = element.getComputedTextLength() / 2 + high;
    return { element, x: x + (x / long) * wide, y: y + (y / long) * 1.3 * high };
  };
  const labels = shown.map((one) => ({ element: one.text, point: one.point }));
  const all = [...labels, { element: told, point: mean }, { element: start, point: first[0] }];
  all.forEach(({ element }) => set(element, { "font-size": high }));
  makeRoom(
    all.map(({ element, point }) => beyond(element, point)),
    [...shown.map((one) => covered(one.point, size)), covered(mean, 1.25 * size), ...along(query.point)],
    high,
    reach,
  );
}

// The corners of the convex hull, in order (Andrew's monotone chain).
function outline(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (ordered) =>
    ordered.reduce((kept, point) => {
      const turns = ([a, b], [c, d], [e, f]) => (c - a) * (f - b) - (d - b) * (e - a);
      while (kept.length > 1 && turns(kept.at(-2), kept.at(-1), point) <= 0) kept.pop();
      return [...kept, point];
    }, []);
  return [...half(sorted).slice(0, -1), ...half(sorted.reverse()).slice(0, -1)];
}

draw();
redraw(svg, draw);
keepChoices(state, draw);
