// A token's first vector: word + position + token type, number by number, and LayerNorm of the sum.

explain(
  "Choose a word, a position and a token type, and watch the sum. Blue numbers are above zero, orange " +
  "ones below. Click into a strip, or move the slider, to follow one number.",
);

const { names, reach, first, size } = data, tables = Object.entries(data.tables);
const read = tables.map(([key, text]) => [key, unpack(text, size)]);
const { word, position, type, weight, bias } = Object.fromEntries(read);
const state = { name: 0, at: Math.min(1, position.length - 1), kind: 0, chosen: first };
Object.assign(state, { gamma: 1, beta: 0, trained: false });
let vector = [...word[0]];

// A row: a control on the left, a strip of signed bars beside it, and at its end the chosen number. `picked`
// gets where a pointer is in the strip.
function strip(title, most, tall, picked = choose) {
  const row = add(figure, "div", { class: "row", style: "gap: 2px 12px; margin-bottom: 4px; align-items: center" });
  const side = add(row, "div", { style: "flex: 0 1 270px" });
  const drawn = add(row, "div", { style: "display: flex; align-items: center" });
  const svg = add(drawn, "svg", {
    viewBox: `0 -1 ${size} 2`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${size} numbers`,
    style: `flex: 1; min-width: 0; height: ${tall}px; overflow: hidden; background: var(--faint); touch-action: pan-y`,
  });
  const mark = add(svg, "rect", { y: -1, height: 2, width: 1, fill: "var(--mark)", "fill-opacity": 0.3 });
  const bars = ["above", "below"].map((sign) => add(svg, "path", { fill: `var(--${sign})` }));
  const end = add(drawn, "div", { style: "flex: 0 0 5em; text-align: right; line-height: 1.2" });
  const number = add(end, "div", { class: "chosen" });
  add(end, "div", { style: "font-size: 12px; color: var(--soft)" }, `scale ±${format(most)}`);
  pick(svg, picked);
  return {
    side, svg,
    draw(values) {
      // What is taller than the strip is cut off at its edge
      const bar = (value, i) => `M${i + 0.1} 0h0.8v${-value / most}h-0.8z`;
      bars[0].setAttribute("d", values.map((value, i) => (value > 0 ? bar(value, i) : "")).join(""));
      bars[1].setAttribute("d", values.map((value, i) => (value < 0 ? bar(value, i) : "")).join(""));
      mark.setAttribute("x", state.chosen - 0.5 * (markWidth() - 1));
      mark.setAttribute("width", markWidth());
      svg.dataset.values = JSON.stringify(values);
      show(number, values[state.chosen], 3);
    },
  };
}

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

const words = strip("Word vector", reach, 44, size > 16 ? choose : change);
words.svg.style.touchAction = size > 16 ? "pan-y" : "none";
const label = add(words.side, "label", {}, "word ");
const select = add(label, "select", { style: "max-width: 180px" });
names.forEach((name) => add(select, "option", {}, name));
select.addEventListener("change", () => {
  state.name = select.selectedIndex;
  vector = [...word[state.name]];
  draw("Another word, another vector from the table of words. ");
});
const places = strip("Position vector", reach, 44);
slider(places.side, "+ position ", { min: 0, max: position.length - 1, value: state.at }, (at) => {
  state.at = at;
  draw("The word's vector stays the same wherever it stands; the position's vector, and so the sum, changes. ");
}).style = "width: 100px";
const kinds = strip("Token type vector", reach, 44);
choice(kinds.side, "+ token type", type.map((_, i) => `${i}`), "0", (kind) => {
  state.kind = +kind;
  draw("The token type tells a pair's first text from its second. ");
});
const sums = strip("Sum", reach, 44), sumTold = moments(sums.side, "= sum");
const norms = strip("LayerNorm of the sum", 3, 60), normTold = moments(norms.side, "LayerNorm");

// The mean and the standard deviation of what is in a strip.
function moments(side, title) {
  add(side, "b", {}, title);
  side.append(": mean ");
  const mean = add(side, "span", { class: "moment" });
  side.append(", std ");
  return [mean, add(side, "span", { class: "moment" })];
}

const scale = add(norms.side, "div", { style: "line-height: 30px" });
const small = { step: 0.1, digits: 1 }, put = (name, value) => { state[name] = value; draw(); };
for (const input of [
  slider(scale, "γ ", { ...small, min: 0, max: 2, value: 1 }, (gamma) => put("gamma", gamma)),
  slider(scale, "β ", { ...small, min: -1, max: 1, value: 0 }, (beta) => put("beta", beta)),
]) input.style = "width: 70px; margin: 0 2px";
if (weight) {
  tick(norms.side, "with the trained γ and β", false, (on) => put("trained", on));
}

// One number of the vectors, and its curve over all positions.
const below = add(figure, "div", { class: "row", style: "gap: 2px 12px; margin-top: 10px; align-items: center" });
const one = add(below, "div", { style: "flex: 0 1 270px; line-height: 30px" });
const chooser = slider(add(one, "div"), "number ", { min: 0, max: size - 1, value: first }, (at) => choose(at));
const value = slider(add(one, "div"), "in the word ", {
  min: -2 * reach, max: 2 * reach, step: reach / 50, value: vector[first], digits: 2,
}, (number) => { vector[state.chosen] = number; draw(changed); });
[chooser, value].forEach((input) => { input.style = "width: 100px"; });
const curve = add(below, "div", { style: "padding-right: 5em" });
const caption = add(curve, "div", { style: "font-size: 13px; color: var(--soft)" });
const wave = add(curve, "svg", {
  viewBox: `-0.5 -1.1 ${position.length} 2.2`, preserveAspectRatio: "none", role: "img",
  style: "width: 100%; height: 70px; overflow: hidden; background: var(--faint)",
});
const thin = { fill: "none", "vector-effect": "non-scaling-stroke" };
add(wave, "path", { ...thin, stroke: "var(--line)", d: `M-1 0H${position.length}` });
const line = add(wave, "path", { ...thin, stroke: "var(--key)", "stroke-width": 1.5 });
const here = add(wave, "path", { ...thin, stroke: "var(--mark)", "stroke-width": 10, "stroke-linecap": "round" });

// With few numbers, each of the word's can be dragged up and down.
function change(at, height) {
  vector[at] = height * reach;
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
  words.draw(vector);
  places.draw(position[state.at]);
  kinds.draw(type[state.kind]);
  sums.draw(total);
  norms.draw(normed);
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
  // The first position is [CLS]'s, and often far from all others: these fill the height
  const most = Math.max(...values.slice(values.length > 1 ? 1 : 0).map(Math.abs)) || 1;
  line.setAttribute("d", `M${values.map((number, at) => `${at} ${-number / most}`).join("L")}`);
  here.setAttribute("d", `M${state.at} ${Math.max(-1, Math.min(1, -values[state.at] / most))}h0`);
  caption.textContent = `Number ${state.chosen} of the position vectors, from position 0 to ${values.length - 1} ` +
    `(${format(Math.min(...values))} to ${format(Math.max(...values))})`;
  wave.setAttribute("aria-label", caption.textContent);
}

draw();
