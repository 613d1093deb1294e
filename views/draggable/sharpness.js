// One query's scores times a factor: softmax of them, and the gradient that softmax passes back, p (1 − p).

explain(
  "Move the factor, also in the picture, or the score of one token. The green piece behind a bar is its gradient, p (1 − p): how fast the bar " +
  "would grow with its score × factor. Watch the bars: once one token has more than half of the attention, the gradient " +
  "that is left shrinks with each further bit.",
);

const { names, size } = data, scores = [...data.scores];
const reach = Math.ceil(1.25 * Math.max(1, ...scores.map(Math.abs)));
const state = { at: -0.5 }; // the exponent of D: as in a model, scores begin divided by √D

const controls = add(figure, "div", { class: "controls" });
// A log scale, from 1/√D over 1 to D.
const range = { min: -0.5, max: 1, step: 0.02, value: state.at, shown: (at) => `× ${format(size ** at, 3)}` };
const exponent = slider(controls, "All scores ", range, scaleBy);
const presets = add(controls, "span", { style: "display: flex; gap: 8px" });
[["÷ √D", -0.5], ["× 1", 0], ["× D, by mistake", 1]].forEach(([name, at]) => {
  const button = add(presets, "button", { type: "button" }, name);
  button.addEventListener("click", () => { exponent.update(at); scaleBy(at); });
});

document.documentElement.classList.add("high");
add(document.head, "style", {}, `
  .map { width: 100%; height: 132px; margin: 4px 0 8px; touch-action: pan-y; cursor: pointer; font-size: var(--small); }
  .map path { fill: none; stroke: var(--key); stroke-width: 1.5px; }
  .map path.axis { stroke: var(--line); stroke-width: 1px; }
  .map path.left { stroke: var(--average); stroke-width: 2.5px; fill: color-mix(in srgb, var(--average) 20%, transparent); }
  .map path.now { stroke: var(--mark); stroke-width: 2px; }
  .map circle { fill: var(--key); }
  .map .end { text-anchor: end; }
  .chart { width: 100%; }
  .chart thead th { text-align: left; white-space: normal; }
  .pair { display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: center; }
  .pair > span:first-child { min-width: 2.6em; text-align: right; }
  .pair input { flex: 1 1 80px; width: 80px; }
  .part { position: relative; flex: 1 1 90px; height: 20px; background: var(--faint); }
  .part span { position: absolute; top: 0; bottom: 0; left: 0; height: auto; min-width: 0; }
  .part .left { top: 5px; bottom: 5px; background: var(--average); }
  .gradient { min-width: 3em; color: var(--average); }
  .on-slide .root { display: none; }
`);
// The weights and the gradient at every factor, with a mark at the one chosen: where one weight takes all, no gradient is left.
const map = add(figure, "svg", { class: "map", role: "img", "aria-label": "each attention weight, and the gradient left, at every factor" });
const put = (kind) => add(map, "path", { class: kind }), axis = put("axis"), curves = names.map(() => put("weight"));
const slope = put("left"), now = put("now"), points = [...names, "left"].map(() => add(map, "circle", { r: 4 }));
points.at(-1).style.fill = "var(--average)";
const signs = [["÷ √D", "start"], ["× 1", "middle"], ["× D", "end"]].map(([text, anchor]) => add(map, "text", { "text-anchor": anchor, y: 128 }, text));
const [winner, green] = ["var(--key)", "var(--average)"].map((fill) => add(map, "text", { class: "end", style: `fill: ${fill}` }));
green.textContent = "gradient left";
const across = (at) => 8 + ((at + 0.5) / 1.5) * (map.clientWidth - 16), up = (share) => 108 - 96 * share;
const ats = Array.from({ length: 76 }, (_, i) => -0.5 + i / 50); // every step of the slider
map.addEventListener("pointerdown", pull);
map.addEventListener("pointermove", (event) => { if (event.buttons) pull(event); });
function pull({ clientX }) {
  const share = (clientX - map.getBoundingClientRect().x - 8) / (map.clientWidth - 16);
  exponent.update(-0.5 + 1.5 * Math.max(0, Math.min(1, share)));
  scaleBy(+exponent.value);
}

function drawMap(at, given, weights, most) {
  const states = ats.map((each) => read([each, ...given])), best = largest(states.at(-1).weights);
  const path = (numbers) => `M${numbers.map((number, i) => `${across(ats[i])} ${up(number)}`).join("L")}`;
  curves.forEach((curve, i) => set(curve, { d: path(states.map((state) => state.weights[i])) }));
  set(slope, { d: `${path(states.map((state) => Math.max(...state.gradients)))}V${up(0)}H${across(-0.5)}` });
  set(axis, { d: `M${across(-0.5)} ${up(1)}V${up(0)}H${across(1)}M${across(0)} ${up(0)}v4` });
  set(now, { d: `M${across(at)} ${up(1)}V${up(0)}` });
  [...weights, most].forEach((number, i) => set(points[i], { cx: across(at), cy: up(number), "data-value": number }));
  signs.forEach((sign, i) => sign.setAttribute("x", across([-0.5, 0, 1][i])));
  winner.textContent = `attention weight of “${names[best]}”`;
  set(winner, { x: across(1), y: up(states.at(-1).weights[best]) + 18 });
  set(green, { x: across(1), y: up(Math.max(...states.at(-1).gradients)) - 8 });
}
add(figure, "p", { class: "root", style: "margin: 0 0 8px; font-size: var(--small)" },
  `D is how many numbers a query and a key have, here ${size}. Its square root √D is ${format(Math.sqrt(size), 1)}.`);
const columns = ["key of", "score q · k", "× factor", "attention weight p, and its gradient p (1 − p) in green"];
const cells = table(figure, columns, names);
figure.querySelector("table").className = "chart";

const rows = cells.map(([score, scaled, weight], i) => {
  const [given, out] = [score, weight].map((cell) => add(cell, "div", { class: "pair" }));
  const number = add(given, "span");
  const input = add(given, "input", {
    type: "range", min: -reach, max: reach, step: 0.1, value: scores[i], "aria-label": `score of ${names[i]}`,
  });
  input.addEventListener("input", () => { scores[i] = +input.value; draw(); });
  score.style.paddingRight = "16px";
  set(scaled, { style: "width: 4.4em" });
  const share = add(out, "span"), part = add(out, "span", { class: "part" });
  const [bar, left] = ["bar", "left"].map((name) => add(part, "span", { class: name }));
  return { number, scaled, share, bar, left, gradient: add(out, "span", { class: "gradient" }) };
});

const totals = add(figure, "p", { style: "margin: 8px 0" }, "Largest attention weight: ");
const most = add(totals, "b");
totals.append(" · gradient left, at best 0.25: ");
const left = add(totals, "b");

function scaleBy(at) {
  state.at = at;
  draw();
}

function read([at, ...given]) {
  const scaled = given.map((score) => score * size ** at), weights = softmax(scaled);
  const gradients = weights.map((weight) => weight * (1 - weight)); // the diagonal of softmax's Jacobian
  return { given, scaled, weights, gradients };
}

function draw() {
  const goal = [state.at, ...scores], { weights, gradients } = read(goal), best = largest(weights);
  glide(state, goal, picture);
  say(told(names[best], weights[best], Math.max(...gradients)));
}

function picture(numbers) {
  const { given, scaled, weights, gradients } = read(numbers);
  drawMap(numbers[0], given, weights, Math.max(...gradients));
  rows.forEach((row, i) => {
    show(row.number, given[i], 1);
    show(row.scaled, scaled[i]);
    show(row.share, weights[i], 3);
    show(row.gradient, gradients[i], 3);
    stretch(row.bar, weights[i]);
    stretch(row.left, gradients[i]); // never beyond the track: p + p (1 − p) < 1
    row.left.style.left = row.bar.style.width;
  });
  show(most, Math.max(...weights), 3);
  show(left, Math.max(...gradients), 3);
}

function told(name, weight, gradient) {
  if (weight > 0.9) {
    return `Sharp: “${name}” takes ${percent(weight)} of the attention, and hardly any gradient is left ` +
      `(${format(gradient, 3)}). A small change of the scores changes next to nothing, so learning is slow.`;
  }
  if (weight < 1.25 / names.length) {
    return `Flat: every token gets about ${percent(1 / names.length)}, whatever its score says. The gradient flows, ` +
      "but the result is nearly the average of all values, which is not best either.";
  }
  return `In between: “${name}” takes ${percent(weight)}, the other tokens still count, and softmax passes a ` +
    "gradient back to every score that has a share.";
}

draw();
redraw(map, draw);
