// A token's first vector: word + position + token type stand on each other, number by number, and LayerNorm moves and
// stretches the sum.

import { format, sum } from "../numbers.js";
import { add, by, set } from "../elements.js";
import { choice, data, explain, figure, glide, keepChoices, say, shownBy, slider, tick } from "./figure.js";
import { EPS, makeCompute, tablesOf } from "./compute/sum_and_scale.js";

explain("Choose a word, a position and a token type, then press “LayerNorm”.");

const { names } = data,
  all = tablesOf(data),
  compute = makeCompute(data);
// Long vectors begin with eight numbers, which can be added up on sight; a button shows the rest.
const FEW = 8,
  long = data.size > 16,
  KINDS = ["word", "position", "type"];
const state = {
  size: long ? FEW : data.size,
  name: 0,
  at: Math.min(1, all.position.length - 1),
  kind: 0,
  trained: false,
  norm: false,
};

const controls = add(figure, "div", { class: "controls" });
const select = add(add(controls, "label", {}, "word "), "select", { style: "max-width: 180px" });
names.forEach((name) => add(select, "option", {}, name));
select.addEventListener("change", () =>
  change({ name: select.selectedIndex }, "Another word, another vector from the table of words. "),
);
slider(controls, "+ position", { min: 0, max: all.position.length - 1, value: state.at }, (at) =>
  change({ at }, "The word's vector is the same at every position; the position's vector, and so the sum, changes. "),
);
choice(
  controls,
  "+ token type",
  all.type.map((_, i) => `${i}`),
  "0",
  (kind) => change({ kind: +kind }, "The token type distinguishes a pair's first text from its second. "),
);
const buttons = add(figure, "div", { class: "controls" });
const press = (text, act) => add(buttons, "button", { type: "button" }, text).addEventListener("click", act);
press("LayerNorm", ({ target }) => {
  target.setAttribute("aria-pressed", !state.norm);
  change({ norm: !state.norm });
});
buttons.firstChild.setAttribute("aria-pressed", false);
const trained =
  all.weight &&
  tick(buttons, "with the trained γ and β", false, (on) => {
    if (on) buttons.firstChild.setAttribute("aria-pressed", true);
    change({ trained: on, norm: on || state.norm });
  });
if (long) {
  press(`now all ${data.size} numbers`, ({ target }) => {
    const size = state.size === FEW ? data.size : FEW;
    target.textContent = size === FEW ? `now all ${data.size} numbers` : `the first ${FEW} alone`;
    change({ size }, size > FEW ? `The same for all ${size} numbers. ` : "");
  });
}

// Few numbers are written below their columns, and added up by eye: what is written adds up exactly, digit by digit.
const isFew = () => state.size <= FEW + 4,
  narrow = window.matchMedia("(max-width: 500px)");
const rounded = (number) => Math.round(number * 10 ** digits) / 10 ** digits;
const brief = (text) => (narrow.matches ? text.replace(/^(−?)0\./, "$1.") : text);
const highest = (rows) => Math.max(...rows.flat().map(Math.abs)),
  digits = highest(all.word.map((row) => row.slice(0, FEW))) < 1 ? 3 : 2;

const around = add(figure, "div", { class: "around" }),
  scale = add(around, "div", { class: "scale" });
const svg = add(around, "svg", { class: "stack", preserveAspectRatio: "none", role: "img" });
const shape = (kind, more) => add(svg, "path", { class: kind, ...more }),
  band = shape("band");
// A colour for each part; which way it goes, the picture shows.
const COLOURS = [100, 60, 28].map((share) => `color-mix(in srgb, var(--key) ${share}%, var(--ground, var(--paper)))`);
const bars = COLOURS.map((fill) => shape("part", { fill })),
  normal = shape("normal", { fill: "currentColor" });
const links = shape("link"),
  zero = shape("zero"),
  mean = shape("mean"),
  ticks = shape("sum");
const lines = ["", "word", "position", "type", "sum", "LayerNorm"].map((title, i) => {
  const row = add(around, "div", { class: `written ${i === 4 ? "total" : ""}` }),
    name = add(row, "span");
  if (i > 0 && i < 4) add(name, "span", { class: "swatch", style: `background: ${COLOURS[i - 1]}` });
  name.append(title);
  return { row, numbers: add(row, "div") };
});
figure.append(by("say"));

// The bottom and top of the picture are −1 and 1. `phase` goes from 0, the sum, over 1, its mean in the middle, to 2,
// LayerNorm.
function picture([phase, limit, middle, deviation, ...flat]) {
  const { size } = state,
    row = (i) => flat.slice(i * size, (i + 1) * size),
    parts = [row(0), row(1), row(2)],
    gamma = row(3),
    beta = row(4);
  const total = parts[0].map((_, i) => sum(parts.map((part) => part[i])));
  const [move, grow] = [Math.min(1, phase), Math.max(0, phase - 1)],
    root = Math.sqrt(deviation ** 2 + EPS);
  const at = (number, i = null) =>
    (number - move * middle) * ((1 - grow) / limit + (grow * (i === null ? 1 : gamma[i])) / root / NORMAL) +
    (i === null ? 0 : (grow * beta[i]) / NORMAL);
  const wide = size > 16 ? 1 : 0.28,
    bar = (x, from, to, across = wide) => `M${x} ${-from}h${across}V${-to}h${-across}z`;
  const shapes = bars.map(() => "");
  let normed = "",
    tops = "",
    steps = "";
  total.forEach((number, i) => {
    let level = 0;
    parts.forEach((part, k) => {
      const x = i + (size > 16 ? 0 : 0.08 + k * 0.28),
        next = level + part[i];
      shapes[k] += bar(x, at(level, i), at(next, i));
      steps += size > 16 ? "" : `M${x} ${-at(next, i)}h${k < 2 ? 0.56 : 0.28}`; // from a part to the next
      level = next;
    });
    normed += bar(i + (size > 16 ? 0 : 0.08), 0, at(number, i), size > 16 ? 1 : 0.84);
    tops += `M${i + (size > 16 ? 0 : 0.04)} ${-at(number, i)}h${size > 16 ? 1 : 0.92}`;
  });
  bars.forEach((path, k) => set(path, { d: shapes[k], opacity: 1 - grow }));
  set(links, { d: steps, opacity: 1 - grow });
  figure.classList.toggle("normed", grow > 0);
  set(normal, { d: normed, opacity: 0.4 * grow });
  set(ticks, { d: tops, opacity: size > 16 ? 1 - grow : 1 });
  set(zero, { d: `M0 ${-(1 - grow) * at(0)}H${size}` });
  // The mean and the band of one std belong to LayerNorm: the sum alone comes first.
  const isPlain = phase > 0 && !(grow === 1 && state.trained),
    visibility = isPlain ? "visible" : "hidden";
  set(mean, { d: `M0 ${-at(middle)}H${size}`, visibility });
  const [low, high] = [-1, 1].map((sign) => at(middle + sign * root));
  set(band, { d: `M0 ${-low}V${-high}H${size}V${-low}z`, visibility });
  label(phase, limit, at(0), isPlain);
}
const NORMAL = 3.2; // of the normalised numbers, as high as the picture: grows with them

function label(phase, limit, base, isPlain) {
  scale.replaceChildren();
  const put = (text, height, kind = "") =>
    add(scale, "span", { class: kind, style: `top: ${130 - 130 * height}px` }, text);
  const done = phase === 2,
    top = done ? format(NORMAL, 1) : `${format(limit)}`;
  if (phase > 0 && !done) return;
  put(top, 0.93);
  put(`\u2212${top}`, -0.93);
  if (done && isPlain) for (const one of [1, -1]) put(format(one, 0), one / NORMAL, "about");
  put("0", done ? 0 : base);
}

function change(chosen, news = "") {
  Object.assign(state, chosen);
  if ("size" in chosen) shownBy.delete(svg);
  draw(news);
}

function draw(news = "") {
  const now = compute(state),
    { parts, total, mean: middle, deviation, gamma, beta, normed, moments } = now,
    { size } = state;
  const tallest = [
      ...all.word.map((row) => row.slice(0, size)),
      ...parts,
      total,
      parts[0].map((n, i) => n + parts[1][i]),
    ],
    limit = highest(tallest) * 1.06 || 1; // as high as the picture while nothing is normalised
  set(svg, { viewBox: `0 -1 ${size} 2`, "aria-label": `${size} columns of three parts` });
  const goal = [state.norm ? 2 : 0, limit, middle, deviation, ...parts.flat(), ...gamma, ...beta];
  glide(svg, goal, picture, shownBy.get(svg), 600);
  const texts = [...parts, parts[0].map((_, i) => sum(parts.map((part) => rounded(part[i])))), normed];
  lines.forEach(({ row, numbers }, k) => {
    const isKey = k > 0 && k < 4; // what the colours mean
    row.style.display = isKey || (isFew() && (k < 5 || state.norm)) ? "" : "none";
    row.style.visibility = isFew() || !state.norm ? "" : "hidden"; // what is normalised has one colour
    numbers.replaceChildren();
    if (!isFew()) return;
    total.forEach((_, i) => {
      const text = k ? brief(format(k < 5 ? rounded(texts[k - 1][i]) : normed[i], k < 5 ? digits : 2)) : i;
      const one = add(numbers, "span", {}, text);
      if (k) one.dataset.value = k === 4 ? total[i] : texts[k - 1][i];
    });
  });
  const trained = state.trained ? ", then each number has a scale and a shift of its own" : "",
    [mean, std] = state.norm ? moments : [middle, deviation];
  document.querySelector("h1").textContent = state.norm
    ? `LayerNorm moves the mean to 0 and stretches until the std is 1${trained}`
    : "Word, position and token type are added up, number by number";
  say(
    `${news || `“${names[state.name]}” at position ${state.at}: three vectors are added. `}` +
      `${state.norm ? "Now" : "The line is their sum:"} the mean of all ${data.size} numbers is ${format(mean, 3)}, and their ` +
      `standard deviation (std) ${format(std, 3)}.`,
  );
}

draw();
narrow.addEventListener("change", () => draw());
keepChoices(state, draw);
