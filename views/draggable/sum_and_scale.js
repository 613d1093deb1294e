// A token's first vector: word + position + token type, number by number, and LayerNorm of the sum.

explain(
  "Choose a word, a position and a token type, and watch the sum. Blue bars, upwards, are above zero, orange ones, " +
  "downwards, below. Click or tap a strip to follow one number; where a vector has few numbers, drag those of the word up " +
  "and down. With a keyboard, use the arrow keys in the word's strip.",
);

const { names, reach, first } = data, all = Object.fromEntries(Object.entries(data.tables).map(([key, text]) => [key, unpack(text, data.size)]));
// Long vectors begin with eight numbers, which can be added up on sight; a button shows the rest.
const FEW = 8, long = data.size > 16;
let size, word, position, type, weight, bias, vector;

function take(count) {
  size = count;
  [word, position, type, weight, bias] = ["word", "position", "type", "weight", "bias"].map((key) =>
    all[key]?.map((row) => row.slice(0, size)));
}

take(long ? FEW : data.size);
const state = { name: 0, at: Math.min(1, position.length - 1), kind: 0, chosen: first < size ? first : 0 };
Object.assign(state, { gamma: 1, beta: 0, trained: false });
vector = [...word[0]];
add(document.head, "style", {}, `
  .written { display: flex; height: 18px; font-size: var(--small); text-align: center; font-variant-numeric: tabular-nums; }
  .written span { flex: 1 1 0; min-width: 0; white-space: nowrap; }
  .scaled { font-size: var(--small); color: var(--soft); }
  @media (max-width: 500px) { .written { letter-spacing: -0.03em; } }
  .written .marked { font-weight: bold; text-decoration: underline 2px var(--mark); text-underline-offset: 3px; }
`);

// A row: a control on the left, a strip of signed bars beside it, and, of many numbers, the chosen one at its end.
// `picked` gets where a pointer is in the strip.
function strip(title, tall, picked = choose) {
  const row = add(figure, "div", { class: "row", style: "gap: 2px 12px; margin-bottom: 4px; align-items: center" });
  const side = add(row, "div", { style: "flex: 0 1 270px" });
  const drawn = add(row, "div", { style: "display: flex; align-items: center" });
  const middle = add(drawn, "div", { style: "flex: 1; min-width: 0" });
  const svg = add(middle, "svg", {
    preserveAspectRatio: "none", role: "img",
    style: `width: 100%; height: ${tall}px; overflow: hidden; background: var(--faint); touch-action: pan-y`,
  });
  const written = add(middle, "div", { class: "written", "aria-hidden": true });
  const mark = add(svg, "rect", { y: -1, height: 2, width: 1, fill: "var(--mark)", "fill-opacity": 0.3 });
  const bars = ["above", "below"].map((sign) => add(svg, "path", { fill: `var(--${sign})` }));
  const end = add(drawn, "div", { style: "flex: 0 0 5em; text-align: right; line-height: 1.2" });
  const number = add(end, "div", { class: "chosen" }), scaled = add(end, "div", { class: "scaled" });
  pick(svg, picked);
  return {
    side, svg,
    // Draw the values, where `limit` is as high as the strip, and write each of a few, as `texts`.
    draw(values, limit, texts) {
      set(svg, { viewBox: `0 -1 ${size} 2`, "aria-label": `${title}: ${size} numbers` });
      svg.dataset.limit = limit;
      [written.hidden, end.hidden] = [!isFew(), isFew()];
      scaled.textContent = `scale ±${format(limit)}`;
      const chosen = state.chosen, bar = (value, i) => `M${i + 0.1} 0h0.8v${-value}h-0.8z`;
      glide(bars, [limit, ...values], ([limit, ...values]) => {
        written.replaceChildren();
        if (isFew()) texts(values).forEach((text, i) => add(written, "span", i === chosen ? { class: "marked" } : {}, text));
        const shares = values.map((value) => value / limit);
        bars[0].setAttribute("d", shares.map((share, i) => (share > 0 ? bar(share, i) : "")).join(""));
        bars[1].setAttribute("d", shares.map((share, i) => (share < 0 ? bar(share, i) : "")).join(""));
      });
      glide(mark, [chosen, markWidth()], ([x, width]) => set(mark, { x: x - 0.5 * (width - 1), width }));
      svg.dataset.values = JSON.stringify(values);
      show(number, values[state.chosen], 3);
    },
  };
}

// Few numbers are written below their bars, and added up by eye: what is written adds up exactly, digit by digit.
const isFew = () => size <= FEW + 4, digits = reach < 1 ? 3 : 2, narrow = window.matchMedia("(max-width: 500px)");
const rounded = (number) => Math.round(number * 10 ** digits) / 10 ** digits;
const brief = (text) => (narrow.matches ? text.replace(/^(\u2212?)0\./, "$1.") : text);
const writeAll = (values) => values.map((value) => brief(format(rounded(value), digits)));
const changed = "You changed one number of the sum, and LayerNorm changes all. ";
const markWidth = () => Math.max(1, size / 120);

// Where a pointer is in a strip: the number's index, and the height from -1 to 1.
function pick(svg, picked) {
  const move = (event) => {
    const box = svg.getBoundingClientRect(), within = (share) => Math.max(0, Math.min(1, share));
    const x = within((event.clientX - box.x) / box.width), y = within((event.clientY - box.y) / box.height);
    picked(Math.min(size - 1, Math.floor(size * x)), 1 - 2 * y);
  };
  svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); move(event); });
  svg.addEventListener("pointermove", (event) => { if (svg.hasPointerCapture(event.pointerId)) move(event); });
}

const words = strip("Word vector", 44, (at, height) => (size > 16 ? choose(at) : change(at, height)));
// By keyboard: ← and → choose a number of the word's vector, ↑ and ↓ change it.
set(words.svg, { role: "spinbutton", tabindex: 0 });
words.svg.addEventListener("keydown", (event) => {
  const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [];
  if (across === undefined) return;
  event.preventDefault();
  if (across) return choose(Math.max(0, Math.min(size - 1, state.chosen + across)));
  const next = vector[state.chosen] + (up * reach) / 50;
  vector[state.chosen] = Math.max(-2 * reach, Math.min(2 * reach, next));
  draw(changed);
});
const label = add(words.side, "label", {}, "word ");
const select = add(label, "select", { style: "max-width: 180px" });
names.forEach((name) => add(select, "option", {}, name));
const common = add(words.side, "span", { class: "scaled", style: "white-space: nowrap" });
select.addEventListener("change", () => {
  state.name = select.selectedIndex;
  vector = [...word[state.name]];
  draw("Another word, another vector from the table of words. ");
});
const places = strip("Position vector", 44);
slider(places.side, "+ position ", { min: 0, max: position.length - 1, value: state.at }, (at) => {
  state.at = at;
  draw("The word's vector is the same at every position; the position's vector, and so the sum, changes. ");
}).style = "width: 100px";
const kinds = strip("Token type vector", 44);
choice(kinds.side, "+ token type", type.map((_, i) => `${i}`), "0", (kind) => {
  state.kind = +kind;
  draw("The token type distinguishes a pair's first text from its second. ");
});
const sums = strip("Sum", 44), sumTold = moments(sums.side, "= sum");
const norms = strip("LayerNorm of the sum", 60), normTold = moments(norms.side, "LayerNorm");
const own = add(norms.side, "div", { class: "scaled" });
const highest = (rows) => Math.max(...rows.flat().map(Math.abs));
let limit = highest([...word, ...type]) || 1; // of few numbers: as high as each strip but the last
words.svg.addEventListener("pointerup", () => { if (size <= 16) draw(changed); }); // the scale waits for the end of a drag

// The mean and the standard deviation of the numbers in a strip.
function moments(side, title) {
  add(side, "b", {}, title);
  side.append(": mean ");
  const mean = add(side, "span", { class: "moment" });
  side.append(", std ");
  return [mean, add(side, "span", { class: "moment" })];
}

const scale = add(norms.side, "div"), later = [scale];
const small = { step: 0.1, digits: 1 }, put = (name, value) => { state[name] = value; draw(); };
for (const input of [
  slider(scale, "γ ", { ...small, min: 0, max: 2, value: 1 }, (gamma) => put("gamma", gamma)),
  slider(scale, "β ", { ...small, min: -1, max: 1, value: 0 }, (beta) => put("beta", beta)),
]) input.style = "width: 70px";
if (weight) {
  later.push(add(norms.side, "div"));
  tick(later[1], "with the trained γ and β", false, (on) => put("trained", on));
}

// One number of the vectors, and its curve over all positions.
const below = add(figure, "div", { class: "row", style: "gap: 2px 12px; margin-top: 10px; align-items: center" });
const one = add(below, "div", { style: "flex: 0 1 270px" });
later.push(below);
const chooser = slider(add(one, "div"), "number ", { min: 0, max: size - 1, value: first }, (at) => choose(at));
const value = slider(add(one, "div"), "in the word ", {
  min: -2 * reach, max: 2 * reach, step: reach / 50, value: vector[first], digits: 2,
}, (number) => { vector[state.chosen] = number; draw(changed); });
[chooser, value].forEach((input) => { input.style = "width: 100px"; });
const curve = add(below, "div", { style: "padding-right: 5em" });
const caption = add(curve, "div", { style: "font-size: var(--small); color: var(--soft)" });
const wave = add(curve, "svg", {
  viewBox: `-0.5 -1.1 ${position.length} 2.2`, preserveAspectRatio: "none", role: "img",
  style: "width: 100%; height: 70px; overflow: hidden; background: var(--faint)",
});
const thin = { fill: "none", "vector-effect": "non-scaling-stroke" };
add(wave, "path", { ...thin, stroke: "var(--line)", d: `M-1 0H${position.length}` });
const line = add(wave, "path", { ...thin, stroke: "var(--key)", "stroke-width": 1.5 });
const here = add(wave, "path", { ...thin, stroke: "var(--mark)", "stroke-width": 10, "stroke-linecap": "round" });

if (long) {
  later.forEach((part) => { part.style.display = "none"; });
  const more = add(figure, "button", { type: "button" }, `now all ${data.size} numbers`);
  more.addEventListener("click", () => {
    take(size === FEW ? data.size : FEW);
    if (state.chosen >= size) state.chosen = 0;
    later.forEach((part) => { part.style.display = size === FEW ? "none" : ""; });
    vector = [...word[state.name]];
    more.textContent = size === FEW ? `now all ${data.size} numbers` : `the first ${FEW} alone`;
    chooser.max = size - 1;
    if (size > FEW) state.chosen = first;
    else Object.assign(state, { gamma: 1, beta: 0, trained: false });
    draw(size === FEW ? "" : `The same for all ${size} numbers. `);
  });
}

// With few numbers, each of the word's can be dragged up and down.
function change(at, height) {
  vector[at] = height * (isFew() ? limit : reach);
  state.chosen = at;
  draw(changed);
}

function choose(at) {
  state.chosen = at;
  draw(`Number ${at} of each vector is marked: its three numbers are added, and no others. `);
}

function draw(news = "") {
  const total = vector.map((number, i) => number + position[state.at][i] + type[state.kind][i]);
  const [mean, deviation] = spread(total);
  const gamma = (i) => state.gamma * (state.trained ? weight[0][i] : 1);
  const beta = (i) => state.beta + (state.trained ? bias[0][i] : 0);
  const root = Math.sqrt(deviation ** 2 + data.eps);
  const normed = total.map((number, i) => ((number - mean) / root) * gamma(i) + beta(i));
  words.svg.style.touchAction = size > 16 ? "pan-y" : "none";
  // One scale for what is added. Few bars are compared by eye, so all of them fit; of many, what is taller than the
  // strip is cut off at its edge.
  const parts = [vector, position[state.at], type[state.kind]];
  if (!dragging && isFew()) limit = Math.max(limit, highest([...parts, total]));
  const most = isFew() ? limit : reach;
  common.textContent = isFew() ? ` four strips, one scale: ±${format(limit)}` : "";
  const ownLimit = isFew() ? Math.max(3, highest([normed])) : 3;
  own.textContent = isFew() ? `a scale of its own: ±${format(ownLimit, 0)}` : "";
  words.draw(vector, most, writeAll);
  const now = vector[state.chosen];
  set(words.svg, { "aria-valuenow": now, "aria-valuetext": `number ${state.chosen}: ${format(now)}` });
  places.draw(position[state.at], most, writeAll);
  kinds.draw(type[state.kind], most, writeAll);
  sums.draw(total, most, () => writeAll(parts[0].map((_, i) => sum(parts.map((part) => rounded(part[i]))))));
  norms.draw(normed, ownLimit, (values) => values.map((value) => format(value)));
  [mean, deviation].forEach((number, i) => show(sumTold[i], number, 3));
  spread(normed).forEach((number, i) => show(normTold[i], number, 3));
  chooser.update(state.chosen);
  value.update(vector[state.chosen]);
  drawWave(position.map((numbers) => numbers[state.chosen]));
  const how = state.trained ? "With the trained γ and β, each number gets a scale and a shift of its own"
    : `LayerNorm brings the mean to β = ${format(state.beta, 1)}, the std to γ = ${format(state.gamma, 1)}`;
  say(`${news || `“${names[state.name]}” at position ${state.at}: three vectors are added. `}The sum has the mean ` +
    `${format(mean, 3)} and the standard deviation (std) ${format(deviation, 3)}. ${how}.`);
}

function spread(values) {
  const mean = sum(values) / size;
  return [mean, Math.sqrt(sum(values.map((number) => (number - mean) ** 2)) / size)]; // biased, as in LayerNorm
}

function drawWave(values) {
  // The first of many positions is [CLS]'s, and often far from all others: the others fill the height
  const most = Math.max(...values.slice(values.length > FEW ? 1 : 0).map(Math.abs)) || 1, shares = values.map((value) => value / most);
  glide(line, shares, (shares) => line.setAttribute("d", `M${shares.map((share, at) => `${at} ${-share}`).join("L")}`));
  const height = Math.max(-1, Math.min(1, -shares[state.at]));
  glide(here, [state.at, height], (point) => here.setAttribute("d", `M${point.join(" ")}h0`));
  caption.textContent = `Number ${state.chosen} of the position vectors, from position 0 to ${values.length - 1} ` +
    `(${format(Math.min(...values))} to ${format(Math.max(...values))})`;
  wave.setAttribute("aria-label", caption.textContent);
}

draw();
narrow.addEventListener("change", () => draw());
