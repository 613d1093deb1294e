// A decoder's shares for the next token as pieces of a ruler: temperature, then top-k, then top-p, in transformers'
// order, and darts.

import { clamp, format, percent, sum } from "../numbers.js";
import { add, by, set } from "../elements.js";
import {
  data,
  explain,
  figure,
  glide,
  keepChoices,
  onDrag,
  pointIn,
  redraw,
  say,
  show,
  slider,
  table,
  widthNow,
} from "./figure.js";
import { generator, makeCompute, orderOf } from "./compute/next_token.js";

explain(
  "Drag the red curtain (top-p) or move temperature and top-k, then throw darts; " +
    "point at a piece, or tap it, to read its numbers.",
);

const { logits, names } = data,
  count = logits.length,
  MOST = 1000; // darts
const order = orderOf(logits),
  compute = makeCompute(data);
const state = { temperature: 1, k: count, p: 0.8, darts: [], chosen: null };

// Two rulers of the same length: the model's, cut by the curtain, and below it what is left, which fills it.
const TOP = 44,
  HIGH = 30,
  LOW = TOP + HIGH + 44,
  PILE = LOW + HIGH + 4,
  DEEP = 60,
  DOT = 8,
  WHOLE = PILE + DEEP + 20;

const controls = add(figure, "div", { class: "controls" }),
  choose = (name, value) => {
    state[name] = value;
    draw();
  };
// A log scale, from 0.1 to 3
const temperature = (at) => Math.min(3, 10 ** at);
slider(
  controls,
  "temperature",
  { min: -1, max: 0.48, step: 0.02, value: 0, shown: (at) => format(temperature(at)) },
  (at) => choose("temperature", temperature(at)),
);
slider(controls, "top-k", { min: 1, max: count, value: count, shown: (k) => (k < count ? k : "off") }, (k) =>
  choose("k", k),
);
const buttons = add(controls, "span", { style: "display: flex; flex-wrap: wrap; gap: 4px 8px" });
for (const [name, act] of Object.entries({
  "throw a dart": () => take(1),
  "throw 100": () => take(100),
  clear: () => choose("darts", []),
})) {
  add(buttons, "button", { type: "button" }, name).addEventListener("click", act);
}

const ruler = add(figure, "svg", {
  class: "ruler",
  style: `height: ${WHOLE}px`,
  role: "group",
  "aria-label": "the tokens as pieces of two rulers: what the model gives, and what can be drawn",
});
const write = (parent, text, more = {}) => add(parent, "text", more, text);
write(ruler, "what the model gives", { class: "line", x: 0, y: TOP - 8 });
write(ruler, "what can be drawn", { class: "line", x: 0, y: LOW - 8 });
const stretches = order.map(() => add(ruler, "path", { class: "stretch" }));
const piece = (i) => {
  const all = add(ruler, "g"),
    drawn = { all, box: add(all, "rect", { rx: 3, height: HIGH }), text: write(all, "") };
  for (const kind of ["pointerenter", "click"]) all.addEventListener(kind, () => pointAt(i));
  all.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType === "mouse") pointAt(null);
  });
  return drawn;
};
const upper = order.map(piece),
  lower = order.map(piece);
const counts = order.map(() => write(ruler, "", { class: "count" })),
  falling = add(ruler, "g");
const curtain = add(ruler, "g", {
  class: "curtain",
  tabindex: 0,
  role: "slider",
  "aria-label": "top-p",
  "aria-valuemin": 0.01,
  "aria-valuemax": 1,
});
add(curtain, "rect", { x: -22, y: TOP - 26, width: 44, height: HIGH + 34, fill: "transparent" });
add(curtain, "path", { d: `M0 ${TOP - 12}V${TOP + HIGH + 4}` });
add(curtain, "circle", { cy: TOP - 14, r: 7 });
const sign = write(curtain, "", { x: -14, y: TOP - 26 });
figure.append(by("say"));
const all = add(figure, "details");
add(all, "summary", {}, count > 50 ? "the numbers of the first 50" : "all numbers");
const cells = table(
  all,
  ["token", "logit", "the model's share", "share now", "darts"],
  order.slice(0, 50).map((i) => names[i]),
);

onDrag(curtain, (event) => cut(pointIn(ruler, event).x / widthNow() / reached()));
curtain.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -0.05, ArrowDown: -0.05, ArrowRight: 0.05, ArrowUp: 0.05, Home: -1, End: 1 }[event.key];
  if (!by) return;
  event.preventDefault();
  cut(state.p + by);
});
const cut = (p) => choose("p", Math.round(100 * clamp(p, 0.01, 1)) / 100);

// How much of the ruler top-k leaves: top-p is a share of that.
function reached() {
  const { given, parts } = compute(state);
  return sum(given.filter((_, i) => parts[i] > 0));
}

function take(times) {
  const before = state.darts.length;
  state.darts = [...state.darts, ...Array.from({ length: Math.min(times, MOST - before) }, random)];
  draw(before);
}

// Their places from the left, and those of the darts: each falls where it lands, and lies on those before it.
function draw(before = state.darts.length) {
  const now = compute(state),
    { given, shares, drawn } = now,
    best = order[0];
  set(curtain, { "aria-valuenow": state.p, "aria-valuetext": state.p < 1 ? format(state.p) : "off" });
  order.forEach((i, at) => {
    const kind = `${shares[i] ? "" : " out"}${i === best ? " best" : ""}${i === state.chosen ? " chosen" : ""}`;
    [
      [upper, given],
      [lower, shares],
    ].forEach(([side, numbers]) => set(side[at].all, { class: `piece-of${kind}`, "data-value": numbers[i] }));
    counts[at].textContent = drawn[i] || "";
    cells[at]?.forEach((cell, column) => show(cell, [logits, given, shares, drawn][column][i], [2, 3, 3, 0][column]));
  });
  glide(ruler, [state.p * reached(), ...order.map((i) => given[i]), ...order.map((i) => shares[i])], picture);
  glide(falling, [1, state.darts.length], ([share]) => drop(share, before), [
    before < state.darts.length ? 0 : 1,
    state.darts.length,
  ]);
  tell(now);
}

function picture([edge, ...numbers]) {
  const wide = widthNow(),
    sides = [
      [upper, TOP, numbers.slice(0, count)],
      [lower, LOW, numbers.slice(count)],
    ];
  const starts = sides.map(([side, y, shares]) => {
    let left = 0;
    return shares.map((share, at) => {
      const x = left * wide,
        length = share * wide,
        { box, text } = side[at];
      left += share;
      set(box, { x, y, width: Math.max(0, length - Math.min(1, length / 2)) });
      const name = names[order[at]];
      [`${name} ${percent(share)}`, name, ""].find((label) => {
        text.textContent = label;
        return !label || text.getComputedTextLength() < length - 6;
      });
      set(text, { x: x + length / 2, y: y + 20 });
      return [x, length];
    });
  });
  stretches.forEach((path, at) => {
    const [[x, length], [to, far]] = starts.map((side) => side[at]);
    path.setAttribute(
      "d",
      far ? `M${x} ${TOP + HIGH + 1}L${to} ${LOW - 1}h${far}L${x + length} ${TOP + HIGH + 1}z` : "",
    );
  });
  // A number where there is room for it
  let free = 0;
  counts.forEach((text, at) => {
    const [x, length] = starts[1][at],
      wide = text.getComputedTextLength();
    const from = x + length / 2 - wide / 2;
    text.style.visibility = length > 0 && from >= free ? "" : "hidden";
    if (length > 0 && from >= free) free = from + wide + 6;
    set(text, { x: x + length / 2, y: PILE + DEEP + 14 });
  });
  curtain.setAttribute("transform", `translate(${edge * wide} 0)`);
  sign.textContent = state.p < 1 ? `top-p ${format(state.p)}` : "top-p off";
}

// The darts, of which those since `before` are still falling.
function drop(share, before) {
  const wide = widthNow(),
    bins = Math.max(1, Math.floor(wide / DOT)),
    heights = new Array(bins).fill(0);
  const places = state.darts.map((dart) => {
    const bin = Math.min(bins - 1, Math.floor(dart * bins));
    return [bin, heights[bin]++];
  });
  const step = Math.min(DOT, DEEP / Math.max(1, ...heights)),
    fresh = state.darts.length - before;
  falling.replaceChildren();
  places.forEach(([bin, row], i) => {
    const end = PILE + step * (row + 0.5),
      late = i < before ? 1 : Math.max(0, Math.min(1, 2 * share - (i - before) / fresh));
    add(falling, "circle", { class: "dart", r: DOT / 2 - 0.5, cx: ((bin + 0.5) * wide) / bins, cy: late * late * end });
  });
}

function pointAt(i) {
  state.chosen = i;
  draw();
}

function tell({ given, shares, drawn }) {
  const stay = shares.filter((share) => share > 0).length,
    best = order[0],
    i = state.chosen,
    thrown = state.darts.length;
  const hits = (token) => (thrown ? ` Of ${thrown} darts, ${drawn[token]} hit it.` : "");
  if (i !== null) {
    return say(
      `“${names[i]}”: logit ${format(logits[i])}; the model gives it ${format(given[i], 3)}, and now it ` +
        `${shares[i] ? `has ${format(shares[i], 3)} of what can be drawn.${hits(i)}` : "cannot be drawn."}`,
    );
  }
  const sizes = {
    "-1": "Below 1, the temperature sharpens: likely tokens gain. ",
    1: "Above 1, the temperature flattens: unlikely tokens gain. ",
    0: "",
  }[Math.sign(state.temperature - 1)];
  const full = thrown >= MOST ? " That is all that fit: clear them to go on." : "";
  if (stay === 1) return say(`Only “${names[best]}” is left: this is greedy search, the same token each time.`);
  const left = stay < count ? `${stay} of ${count} tokens are left${nucleus()}` : `All ${count} tokens can be drawn`;
  return say(`${sizes}${left}; “${names[best]}” has ${percent(shares[best])} of the ruler.${hits(best)}${full}`);
}

// What top-p keeps, in words.
const nucleus = () => (state.p < 1 ? `, the likeliest until their shares reach ${format(state.p)}` : "");

function resize() {
  set(ruler, { viewBox: `0 0 ${widthNow()} ${WHOLE}` });
  draw();
}

const random = generator(0);
state.darts = Array.from({ length: 100 }, random);
resize();
redraw(figure, resize, ruler);
keepChoices(state, draw);
