// A mask, painted cell by cell: which token may see which, and the average of the values that each row may see.

import { format, sum } from "../numbers.js";
import { add, onArrows, set } from "../elements.js";
import { choice, data, explain, figure, keepChoices, nameShown, say, show } from "./figure.js";
import { compute } from "./compute/mask_painter.js";

explain(
  "Press a cell to close or open it, drag on to paint (with keys: arrows, Space), or change a value and watch " +
    "whose average moves. All scores are equal here: n open cells weigh 1/n each.",
);

const { names, masks } = data,
  MOST = 1000; // the largest value that one can type
const shown = data.values.map((value) => +value.toPrecision(6)); // 0.1, not float32's 0.10000000149
const MEANING = {
  bidirectional: "Bidirectional, as in BERT: each token may see every token, so every row averages all the values.",
  causal: "Causal (autoregressive), as in GPT: each token may see itself and the tokens before it, and none after it.",
  padding: `Padding: a short text in a batch is filled up, and no token may see the filling. Here it is ${padding()}.`,
  window:
    "Window: each token may see itself and one neighbour on each side. ModernBERT's windows (notebook 14) are wider.",
  cross:
    "Cross attention: each token that the decoder has written (rows) may see the whole text that the encoder " +
    "has read (columns).",
};

const radios = choice(add(figure, "div", { class: "controls" }), "Mask", Object.keys(masks), data.mask, start);
const grid = add(add(figure, "div", { class: "scroll" }), "table", {
  class: "mask",
  role: "grid",
  "aria-label": "who may see whom",
});
const head = add(grid, "thead"),
  titles = add(head, "tr"),
  given = add(head, "tr"),
  body = add(grid, "tbody");
add(titles, "td", { class: "corner" }, "looks \u2193\nis seen \u2192");
names.forEach((name) => add(titles, "th", { scope: "col", title: name }, name));
add(titles, "td");
add(titles, "th", { scope: "col", class: "average" }, "average");
add(given, "th", { scope: "row", class: "value", style: "text-align: left" }, "value");
const inputs = names.map((name, j) =>
  add(add(given, "td"), "input", {
    type: "number",
    step: "any",
    min: -MOST,
    max: MOST,
    value: shown[j],
    "aria-label": `value of ${name}`,
  }),
);
add(given, "td");
add(given, "td");

// `before` is what the last change began with: the rows whose average differs from then are marked.
const state = { values: shown, open: [], rows: [], mask: "", edited: null, before: null };
let cells = [],
  ends = [];

const rowsOf = (mask) => (mask === "cross" ? data.rows : names);

// Begin with a mask. A value that was changed stays, so readers see which rows it reaches under this mask.
function start(mask) {
  const open = masks[mask].map((row) => [...row]),
    values = state.before?.values ?? state.values,
    rows = rowsOf(mask);
  if (rows !== state.rows) build(rows);
  Object.assign(state, { mask, open, rows, before: { values, open } });
  draw();
}

function build(rows) {
  body.replaceChildren();
  ends = [];
  cells = rows.map((name, i) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row", title: name }, name);
    const made = names.map((seen, j) =>
      add(add(row, "td"), "button", {
        type: "button",
        class: "cell",
        "data-at": `${i} ${j}`,
        tabindex: i + j ? -1 : 0,
      }),
    );
    ends.push({ row, old: add(row, "td", { class: "old" }), average: add(row, "td", { class: "average" }) });
    return made;
  });
}

function draw() {
  const { weights, averages } = compute(state),
    { averages: earlier } = compute(state.before);
  const moved = averages.map((average, i) => format(average, 9) !== format(earlier[i], 9));
  cells.forEach((row, i) =>
    row.forEach((cell, j) => {
      const on = state.open[i][j];
      set(cell, { "aria-pressed": Boolean(on) });
      const digits = on ? 2 : 0;
      show(cell, weights[i][j], digits, (now) => cell.style.setProperty("--share", `${100 * now}%`));
      nameShown(cell, format(weights[i][j], digits), `(${state.rows[i]} may see ${names[j]})`);
    }),
  );
  ends.forEach(({ row, old, average }, i) => {
    row.classList.toggle("moved", moved[i]);
    old.textContent = moved[i] ? `${format(earlier[i])} \u2192` : "";
    show(average, averages[i]);
  });
  radios.forEach((radio) => {
    radio.checked = radio.value === state.mask;
  });
  say(sentence(averages, earlier, moved));
}

function sentence(averages, earlier, moved) {
  const { open, rows, values, before, edited } = state,
    empty = open.findIndex((row) => sum(row) === 0);
  if (empty >= 0) {
    return (
      `“${rows[empty]}” may see nothing. Softmax of nothing has no answer (torch gives NaN), so a mask must ` +
      "leave each row at least one token."
    );
  }
  if (edited !== null && before.values[edited] !== values[edited]) {
    const meaning = MEANING[state.mask] ?? "This is your own mask.";
    return (
      `${meaning} The value of “${names[edited]}” changes from ${before.values[edited]} to ${values[edited]}, and ` +
      `${moving(moved)}: ${reached(moved)}`
    );
  }
  const painted = cells
    .flat()
    .map(place)
    .filter(([i, j]) => open[i][j] !== before.open[i][j]);
  if (!painted.length) return MEANING[state.mask] ?? "This is your own mask: choose one above to begin again.";
  const [i, j] = painted[0],
    known = state.mask ? ` This is the ${state.mask} mask.` : "";
  if (painted.length > 1) return `${painted.length} cells are painted, and ${moving(moved)}.${known}`;
  const after = format(averages[i]);
  const change = moved[i] ? `moves from ${format(earlier[i])} to ${after}` : `stays ${after}`;
  return `“${rows[i]}” may ${open[i][j] ? "now" : "no longer"} see “${names[j]}”. Its average ${change}.${known}`;
}

function moving(moved) {
  const count = moved.filter(Boolean).length;
  return `${count} of ${moved.length} averages ${count === 1 ? "moves" : "move"}`;
}

function reached(moved) {
  if (moved.every(Boolean)) return "every row may see it.";
  const who = state.rows.filter((_, i) => moved[i]).map((name) => `“${name}”`);
  return who.length ? `only ${who.join(", ")} may see it.` : "no row may see it.";
}

function padding() {
  return names.includes("[PAD]") ? "[PAD]" : `the last token, “${names.at(-1)}”`;
}

inputs.forEach((input, j) => {
  input.addEventListener("input", () => {
    const typed = input.valueAsNumber;
    if (!Number.isFinite(typed)) return; // empty, or a minus
    if (state.edited !== j) Object.assign(state, { edited: j, before: { values: state.values, open: state.open } });
    else state.before.open = state.open;
    state.values = state.values.with(j, Math.max(-MOST, Math.min(MOST, typed)));
    draw();
  });
  input.addEventListener("change", () => {
    input.value = state.values[j];
  });
});

// A stroke of the brush switches the first cell, and gives its new state to all cells that it passes.
let brush = null;

function begin(cell) {
  const [i, j] = place(cell);
  Object.assign(state, { edited: null, before: { values: state.values, open: state.open.map((row) => [...row]) } });
  brush = 1 - state.open[i][j];
  paint(cell);
}

function paint(cell) {
  const [i, j] = place(cell);
  if (state.open[i][j] === brush) return;
  state.open[i][j] = brush;
  state.mask = Object.keys(masks).find(isPainted) ?? "";
  draw();
}

const isPainted = (mask) => rowsOf(mask) === state.rows && String(masks[mask]) === String(state.open);
const place = (cell) => cell.dataset.at.split(" ").map(Number);
const cellOf = (element) => element?.closest?.(".cell");

body.addEventListener("pointerdown", (event) => {
  const cell = cellOf(event.target);
  if (!cell || event.button) return;
  cell.setPointerCapture(event.pointerId);
  cell.focus();
  begin(cell);
});
body.addEventListener("pointermove", (event) => {
  const cell = brush !== null && cellOf(document.elementFromPoint(event.clientX, event.clientY));
  if (cell) paint(cell);
});
["pointerup", "pointercancel"].forEach((end) =>
  body.addEventListener(end, () => {
    brush = null;
  }),
);
body.addEventListener("click", (event) => {
  if (event.detail || !cellOf(event.target)) return; // a pointer's has been painted
  begin(cellOf(event.target));
  brush = null;
});
body.addEventListener("focusin", (event) => {
  cells.flat().forEach((cell) => {
    cell.tabIndex = cell === event.target ? 0 : -1;
  });
});
onArrows(body, (right, down, { target }) => {
  const [i, j] = place(target);
  cells[i + down]?.[j + right]?.focus();
});

start(data.mask);
keepChoices(state, draw);
