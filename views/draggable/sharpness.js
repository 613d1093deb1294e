// One query's scores times a factor, and their softmax. One score is nudged up and down for ever: how far its bar answers
// is the gradient that softmax passes back.

import { root } from "../frame.js";
import { clamp, format, largest, quoted, softmax } from "../numbers.js";
import { add, fitText, onArrows, set } from "../elements.js";
import {
  animated,
  data,
  explain,
  figure,
  glide,
  keepChoices,
  moves,
  nameShown,
  redraw,
  say,
  slider,
  widthNow,
} from "./figure.js";
import { makeCompute, NUDGE } from "./compute/sharpness.js";

explain(
  "Move the factor, and click or tap a row (or press ↑ and ↓) to nudge its score.",
  "The line below its bar goes from the weight at one end of the nudge to the weight at the other.",
);

const { names, size } = data,
  state = { at: -0.5, scores: data.scores, nudged: largest(data.scores) }; // `at`: the exponent of D, ÷ √D as in a model
const PERIOD = 1700; // milliseconds from one end of the nudge to the same end

const compute = makeCompute(data);

root.classList.add("high");

const controls = add(figure, "div", { class: "controls" });
const range = { min: -0.5, max: 1, step: 0.02, value: state.at, shown: (at) => `× ${format(size ** at, 3)}` };
const exponent = slider(controls, "All scores", range, (at) => change({ at }));
for (const [name, at] of [
  ["÷ √D", -0.5],
  ["× 1", 0],
  ["× D", 1],
]) {
  add(controls, "button", { type: "button" }, name).addEventListener("click", () => change({ at }));
}
const drawing = add(figure, "svg", { class: "bars", role: "radiogroup", "aria-label": "the score that is nudged" });
const ROW = 34,
  TOP = 22;
let bar = null; // of the nudged score, its number, the dot, and where all of them are

function change(chosen) {
  Object.assign(state, chosen);
  exponent.update(state.at);
  draw();
}

function draw() {
  const { scaled, weights, ends } = compute(state);
  glide(drawing, [...scaled, ...weights, ...ends], (numbers) => {
    const N = names.length;
    paint(numbers.slice(0, N), numbers.slice(N, 2 * N), numbers.slice(2 * N));
  });
  const moved = ends[1] - ends[0],
    name = quoted(names[state.nudged]);
  document.querySelector("h1").textContent =
    moved > 0.08
      ? `The nudge is answered: the weight moves by ${format(moved)}`
      : moved >= 0.0005
        ? `The nudge is hardly answered: the weight moves by ${format(moved, 3)}`
        : "The same nudge, and nothing moves: there is no gradient to learn from";
  say(
    `${name} has ${format(weights[state.nudged])} of the attention. When its score is nudged from −0.5 to +0.5, its weight ` +
      `goes from ${format(ends[0], 3)} to ${format(ends[1], 3)}. In training the nudge is all there is: where nothing answers, ` +
      "nothing is learned.",
  );
}

function paint(scaled, weights, ends) {
  const width = widthNow(),
    narrow = width < 520,
    name = narrow ? 74 : 120,
    score = name + (narrow ? 60 : 80),
    rail = score + (narrow ? 32 : 56),
    left = rail + (narrow ? 30 : 52),
    whole = width - left - 50;
  const had = drawing.contains(document.activeElement);
  drawing.replaceChildren();
  set(drawing, { viewBox: `0 0 ${width} ${TOP + ROW * names.length}` });
  [
    [score, "score", "end"],
    [rail, narrow ? "" : "nudge", "middle"],
    [left, "weight", "start"],
  ].forEach(([x, text, anchor]) => add(drawing, "text", { x, y: 14, "text-anchor": anchor, class: "soft" }, text));
  names.forEach((text, i) => {
    const y = TOP + ROW * i,
      isNudged = i === state.nudged;
    const row = add(drawing, "g", {
      class: "nudgeable",
      role: "radio",
      "aria-checked": isNudged,
      tabindex: isNudged ? 0 : -1,
    });
    row.addEventListener("click", () => change({ nudged: i }));
    add(row, "rect", { class: "room", x: 0, y, width, height: ROW - 2, rx: 4 });
    const label = add(row, "text", { class: "name", x: name, y: y + 21, "text-anchor": "end" }, text);
    fitText(label, name);
    row.append(" "); // between the texts, for programs that read what is shown
    const digits = Math.abs(scaled[i]) < 10 ? 2 : 0;
    add(row, "text", { x: score, y: y + 21, "text-anchor": "end", "data-value": scaled[i] }, format(scaled[i], digits));
    row.append(" ");
    add(row, "rect", { class: "whole", x: left, y: y + 6, width: whole, height: 20 });
    const filled = add(row, "rect", { class: "filled", x: left, y: y + 6, width: whole * weights[i], height: 20 });
    const number = add(
      row,
      "text",
      { x: width, y: y + 21, "text-anchor": "end", "data-value": weights[i] },
      format(weights[i]),
    );
    nameShown(row, `${text} ${format(scaled[i], digits)} ${format(weights[i])}`, "are its score and its weight");
    if (!isNudged) return;
    const [from, to] = ends;
    add(row, "path", { class: "ends", d: `M${left + whole * from} ${y + 26}v6m0 -3H${left + whole * to}m0 -3v6` });
    add(row, "path", { class: "rail", d: `M${rail - 22} ${y + 16}h44` });
    const dot = add(row, "circle", { class: "finger", cx: rail, cy: y + 16, r: 6 });
    bar = { filled, number, dot, rail, whole };
  });
  if (had) drawing.querySelector("[tabindex='0']").focus({ preventScroll: true });
}

// The nudge, for ever, while the figure can be seen and motion is welcome.
function nudge(now) {
  if (!figure.isConnected) return;
  if (bar && animated() && !moves.size) {
    const by = NUDGE * Math.sin((2 * Math.PI * now) / PERIOD),
      { scaled } = compute(state);
    const weight = softmax(scaled.map((score, i) => (i === state.nudged ? score + by : score)))[state.nudged];
    set(bar.dot, { cx: bar.rail + 40 * by });
    set(bar.filled, { width: bar.whole * weight });
    bar.number.textContent = format(weight);
  }
  requestAnimationFrame(nudge);
}

onArrows(drawing, (right, down) => {
  change({ nudged: clamp(state.nudged + right + down, 0, names.length - 1) });
  drawing.querySelector("[tabindex='0']").focus();
});

draw();
redraw(figure, draw, drawing);
requestAnimationFrame(nudge);
keepChoices(state, draw);
