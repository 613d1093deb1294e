// One query's scores times a factor: softmax of them, and the gradient that softmax passes back, p (1 − p).

explain(
  "Drag the mark in the strip, or move the slider, and watch the dashed ends; " +
    "“own scores” changes the score of one token.",
);

const { names, size } = data,
  state = { at: -0.5, scores: [...data.scores] }; // the exponent of D: ÷ √D, as in a model
const STEP = 0.02,
  FROM = -0.5,
  TO = 1;

// The scores times the factor, their softmax, and the diagonal of its Jacobian.
function compute({ at, scores }) {
  const scaled = scores.map((score) => score * size ** at),
    weights = softmax(scaled);
  return { scaled, weights, gradients: weights.map((weight) => weight * (1 - weight)) };
}

root.classList.add("high");

const controls = add(figure, "div", { class: "controls" });
const range = { min: FROM, max: TO, step: STEP, value: state.at, shown: (at) => `× ${format(size ** at, 3)}` };
const exponent = slider(controls, "All scores", range, scaleBy);
const presets = add(controls, "span", { style: "display: flex; gap: 8px" });
[
  ["÷ √D", -0.5],
  ["× 1", 0],
  ["× D", 1],
].forEach(([name, at]) => {
  add(presets, "button", { type: "button" }, name).addEventListener("click", () => {
    exponent.update(at);
    scaleBy(at);
  });
});

// The weights and the gradient left at every factor, with a mark at the one chosen.
const map = add(figure, "svg", {
  class: "map",
  role: "img",
  "aria-label": "each attention weight, and the gradient left, at every factor",
});
const put = (kind) => add(map, "path", { class: kind }),
  axis = put("axis"),
  slope = put("left"),
  curves = names.map(() => put("weight"));
const now = put("now"),
  points = [...names, "left"].map(() => add(map, "circle", { r: 4 })),
  grip = add(map, "circle", { class: "grip", r: 7 });
const signs = [
  ["÷ √D", "start"],
  ["× 1", "middle"],
  ["× D", "end"],
].map(([text, anchor]) => add(map, "text", { "text-anchor": anchor, y: 89 }, text));
const [winner, dashed] = ["", "gradient left"].map((text) => add(map, "text", { class: "end" }, text));
const across = (at) => 8 + ((at - FROM) / (TO - FROM)) * (map.clientWidth - 16),
  up = (share) => 72 - 62 * share;
const ats = Array.from({ length: Math.round((TO - FROM) / STEP) + 1 }, (_, i) => FROM + i * STEP);
map.addEventListener("pointerdown", pull);
map.addEventListener("pointermove", (event) => {
  if (event.buttons) pull(event);
});
function pull({ clientX }) {
  const share = (clientX - map.getBoundingClientRect().x - 8) / (map.clientWidth - 16);
  exponent.update(FROM + (TO - FROM) * Math.max(0, Math.min(1, share)));
  scaleBy(+exponent.value);
}

const columns = ["key of", "score", "weight p", "", "gradient"];
const cells = table(figure, columns, names);
figure.querySelector("table").className = "chart";
const rows = cells.map(([scaled, weight, track, gradient]) => {
  const part = add(track, "span", { class: "part" });
  return {
    scaled,
    weight,
    gradient,
    bar: add(part, "span", { class: "bar" }),
    ghost: add(part, "span", { class: "ghost" }),
  };
});
add(
  figure,
  "p",
  { class: "root" },
  "Pale, up to the dashed end: the gradient p (1 − p), how fast a weight grows with its score. " +
    `Here D = ${size}, so √D = ${format(Math.sqrt(size), 1)}.`,
);
figure.append(document.getElementById("say"));

const own = add(figure, "details"),
  reach = Math.ceil(1.25 * Math.max(1, ...data.scores.map(Math.abs)));
add(own, "summary", {}, "own scores");
const given = add(own, "div", { class: "controls", style: "margin: 0" });
names.forEach((name, i) =>
  slider(given, name, { min: -reach, max: reach, step: 0.1, value: state.scores[i], digits: 1 }, (score) => {
    state.scores[i] = score;
    draw();
  }),
);

function scaleBy(at) {
  state.at = at;
  draw();
}

function draw() {
  const { weights, gradients } = compute(state),
    best = largest(weights);
  glide(state, [state.at, ...state.scores], ([at, ...scores]) => picture({ at, scores }));
  say(told(names[best], weights[best], Math.max(...gradients)));
}

function picture(numbers) {
  const { scaled, weights, gradients } = compute(numbers);
  rows.forEach((row, i) => {
    show(row.scaled, scaled[i]);
    show(row.weight, weights[i]);
    show(row.gradient, gradients[i]);
    stretch(row.bar, weights[i]);
    stretch(row.ghost, gradients[i]); // never beyond the track: p + p (1 − p) < 1
    row.ghost.style.left = row.bar.style.width;
    row.ghost.style.visibility = gradients[i] < 0.004 ? "hidden" : "";
  });
  drawMap(numbers, weights, Math.max(...gradients));
}

function drawMap({ at, scores }, weights, most) {
  const states = ats.map((each) => compute({ at: each, scores })),
    best = largest(states.at(-1).weights),
    left = states.map((one) => Math.max(...one.gradients));
  const path = (numbers) => `M${numbers.map((number, i) => `${across(ats[i])} ${up(number)}`).join("L")}`;
  curves.forEach((curve, i) =>
    set(curve, { d: path(states.map((one) => one.weights[i])), class: i === best ? "most" : "weight" }),
  );
  set(slope, { d: `${path(left)}V${up(0)}H${across(FROM)}Z` });
  set(axis, { d: `M${across(FROM)} ${up(1)}V${up(0)}H${across(TO)}M${across(0)} ${up(0)}v4` });
  set(now, { d: `M${across(at)} ${up(1) - 4}V${up(0)}` });
  set(grip, { cx: across(at), cy: up(1) - 2 });
  [...weights, most].forEach((number, i) => set(points[i], { cx: across(at), cy: up(number), "data-value": number }));
  signs.forEach((sign, i) => sign.setAttribute("x", across([FROM, 0, TO][i])));
  winner.textContent = `attention weight of “${names[best]}”`;
  set(winner, { x: across(TO), y: up(states.at(-1).weights[best]) + 18 });
  set(dashed, { x: across(TO), y: up(left.at(-1)) - 8 });
}

function told(name, weight, gradient) {
  if (weight > 0.9) {
    return (
      `Sharp: “${name}” takes ${percent(weight)} of the attention, and hardly any gradient is left ` +
      `(${format(gradient, 3)}). A small change of the scores changes next to nothing, so learning is slow.`
    );
  }
  if (weight < 1.25 / names.length) {
    return (
      `Flat: every token gets about ${percent(1 / names.length)}, whatever its score says. The gradient flows, ` +
      "but the result is nearly the average of all values, which is not best either."
    );
  }
  return (
    `In between: “${name}” takes ${percent(weight)}, the other tokens still count, and softmax passes a ` +
    "gradient back to every score that has a share."
  );
}

draw();
redraw(map, draw);
