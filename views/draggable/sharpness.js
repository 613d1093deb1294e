// One query's scores times a factor: softmax of them, and the gradient that softmax passes back, p (1 − p).

explain(
  "Move the factor, or the score of one token. Watch the bars: once one token has more than half of the " +
  "attention, the gradient that is left shrinks with each further bit.",
);

const { names, size } = data, scores = [...data.scores];
const reach = Math.ceil(1.25 * Math.max(1, ...scores.map(Math.abs)));
let factor = 1;

const controls = add(figure, "div", { class: "controls" });
// On a log scale: the exponent of D, from 1/√D over 1 to D.
const range = { min: -0.5, max: 1, step: 0.02, value: 0, shown: (at) => `× ${format(size ** at, 3)}` };
const exponent = slider(controls, "All scores ", range, scaleBy);
const presets = add(controls, "span");
[["÷ √D", -0.5], ["× 1", 0], ["× D, by mistake", 1]].forEach(([name, at]) => {
  const button = add(presets, "button", { type: "button", style: "margin-right: 8px" }, name);
  button.addEventListener("click", () => { exponent.update(at); scaleBy(at); });
});
add(presets, "span", {}, `D = ${size}, √D = ${format(Math.sqrt(size), 1)}`);

const columns = ["key of", "score q · k", "× factor", "attention weight p", "gradient left, p (1 − p)"];
const cells = table(figure, columns, names);
figure.querySelector("table").style.width = "100%";
figure.querySelectorAll("thead th").forEach((head) => { head.style = "text-align: left; white-space: normal"; });

// A number with something beside it, or under it where there is little room.
function numberIn(cell) {
  const pair = add(cell, "div", { style: "display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: center" });
  return [add(pair, "span", { style: "min-width: 2.6em; text-align: right" }), pair];
}

function barIn(cell, colour) {
  const [number, pair] = numberIn(cell);
  const track = add(pair, "span", { style: "flex: 1 1 50px; background: var(--faint)" });
  return [number, add(track, "span", { class: "bar", style: `background: ${colour}` })];
}

const rows = cells.map(([score, scaled, weight, gradient], i) => {
  const [number, pair] = numberIn(score);
  const input = add(pair, "input", {
    type: "range", min: -reach, max: reach, step: 0.1, value: scores[i], "aria-label": `score of ${names[i]}`,
    style: "flex: 1 1 90px; width: 90px; margin: 0",
  });
  input.addEventListener("input", () => { scores[i] = +input.value; draw(); });
  score.style.paddingRight = weight.style.paddingRight = "16px";
  set(scaled, { style: "width: 5em; text-align: left" });
  return { number, scaled, weight: barIn(weight, "var(--key)"), gradient: barIn(gradient, "var(--average)") };
});

const totals = add(figure, "p", { style: "margin: 8px 0" }, "Largest attention weight: ");
const most = add(totals, "b");
totals.append(" · gradient left, at best 0.25: ");
const left = add(totals, "b");

function scaleBy(at) {
  factor = size ** at;
  draw();
}

function draw() {
  const scaled = scores.map((score) => score * factor), weights = softmax(scaled);
  const gradients = weights.map((weight) => weight * (1 - weight)); // the diagonal of softmax's Jacobian
  rows.forEach((row, i) => {
    show(row.number, scores[i], 1);
    show(row.scaled, scaled[i]);
    show(row.weight[0], weights[i], 3);
    show(row.gradient[0], gradients[i], 3);
    stretch(row.weight[1], weights[i]);
    stretch(row.gradient[1], 4 * gradients[i]); // 1/4 is the most there can be, at p = 1/2
  });
  const best = largest(weights);
  show(most, weights[best], 3);
  show(left, Math.max(...gradients), 3);
  say(told(names[best], weights[best], Math.max(...gradients)));
}

function told(name, weight, gradient) {
  if (weight > 0.9) {
    return `Sharp: “${name}” takes ${percent(weight)} of the attention, and hardly any gradient is left ` +
      `(${format(gradient, 3)}). A small change of the scores changes nothing, so learning stalls.`;
  }
  if (weight < 1.25 / names.length) {
    return `Flat: every token gets about ${percent(1 / names.length)}, whatever its score says. The gradient flows, ` +
      "but the result is nearly the average of all values, which is not best either.";
  }
  return `In between: “${name}” takes ${percent(weight)}, the other tokens still count, and softmax passes a ` +
    "gradient back to every score that has a share.";
}

draw();
