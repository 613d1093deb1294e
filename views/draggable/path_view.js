// The words of a text as lanes through the layers of an encoder. Where a word goes: how far each vector turns without it,
// measured. Where a vector comes from: its share of each word's vector in each layer, and a measurement beside that.

import { bandPath, clamp, format, largest, quoted } from "../numbers.js";
import { add, by, fitText, onArrows, set } from "../elements.js";
import {
  choice,
  data,
  explain,
  figure,
  glide,
  keepChoices,
  moves,
  nameShown,
  redraw,
  say,
  widthNow,
} from "./figure.js";
import { FROM, GOES, makeCompute, reachOf, splitOf } from "./compute/path_view.js";

const { names, layers: L } = data,
  N = names.length;
const split = splitOf(data),
  compute = makeCompute(data);
const state = { mode: GOES, word: data.first };
let lit = null; // the word that is pointed at

explain(
  "Choose a word: click or tap it, or press the arrow keys.",
  "Where it goes: the word is replaced by the mask token, and each lane is as wide as the turn (1 \u2212 cosine) of that " +
    "word\u2019s vector after each layer. Where it comes from: in each layer, all lanes together are 1 wide. Attention and " +
    "residual are split exactly by source, and a part\u2019s share is how much nearer it brings one to the whole (the idea " +
    "of ALTI); the feed-forward network reads one word and stays in its lane. The hollow bars are the test: how far the " +
    "vector turns without that word. Where the two disagree, believe the test.",
);
const controls = add(figure, "div", { class: "controls" });
const modes = split ? choice(controls, "Follow a word:", [GOES, FROM], GOES, (mode) => change({ mode })) : [];
const drawing = add(figure, "svg", { class: "paths", role: "radiogroup", "aria-label": "the word that is followed" });
figure.append(by("say"));

// The word, other than that which is followed, with the largest number; a mark only if there is no other word.
const mostOf = (numbers) =>
  largest(numbers.map((number, at) => number - (at === state.word ? 9 : data.marks.includes(names[at]) ? 5 : 0)));

function change(chosen) {
  Object.assign(state, chosen);
  lit = null;
  draw();
}

function draw() {
  modes.forEach((input) => {
    input.checked = input.value === state.mode;
  });
  const { widths, tests } = compute(state);
  glide(drawing, [...widths.flat(), ...tests], (numbers) => {
    const now = Array.from({ length: L + 1 }, (_, layer) => numbers.slice(layer * N, (layer + 1) * N));
    paint(now, numbers.slice(-N), compute(state));
  });
  const word = quoted(names[state.word]),
    first = state.mode === FROM ? widths[0] : tests,
    most = mostOf(first);
  document.querySelector("h1").textContent =
    state.mode === FROM
      ? `${format(first[state.word])} of the last vector of ${word} comes from itself, ${format(first[most])} from ${quoted(names[most])}`
      : `Without ${word}, ${quoted(names[most])} turns most of the words, by ${format(first[most])}`;
  tell();
}

// A sentence about the word that is pointed at, or about what is drawn.
function tell() {
  const { widths, tests } = compute(state),
    word = quoted(names[state.word]);
  const order = [...names.keys()].filter((i) => i !== state.word).sort((a, b) => tests[b] - tests[a]),
    list = (some) => some.map((i) => `${quoted(names[i])} ${format(tests[i])}`).join(", ");
  if (state.mode === GOES) {
    if (lit !== null && lit !== state.word) {
      const after = Array.from({ length: L + 1 }, (_, layer) => format(widths[layer][lit])).join(", ");
      return say(`Without ${word}, ${quoted(names[lit])} turns by ${after}: in the embedding, then after each layer.`);
    }
    const least = order.length > 4 ? ` Least: ${list(order.slice(-1))}.` : "";
    return say(`Measured: ${word} becomes a mask. Most turned: ${list(order.slice(0, 3))}.${least}`);
  }
  if (lit !== null && lit !== state.word) {
    return say(
      `${quoted(names[lit])} gives ${word} ${format(widths[0][lit], 3)}, over all ways. The test: without ${quoted(names[lit])} ` +
        `the vector of ${word} turns by ${format(tests[lit], 3)}.`,
    );
  }
  say(`By the test, the vector of ${word} turns most without ${list(order.slice(0, 3))}.`);
}

function layout(widths, isFrom) {
  const width = widthNow(),
    narrow = width < 520;
  const scale = isFrom ? (narrow ? 110 : 150) : narrow ? 36 : 52,
    high = names.map((_, i) => Math.max(24, Math.min(1, Math.max(...widths.map((row) => row[i]))) * scale + 8));
  let y = 22;
  const middle = high.map((each) => {
    y += each;
    return y - each / 2;
  });
  const name = narrow ? 74 : 104,
    left = isFrom ? name + (narrow ? 70 : 150) : name + 14,
    right = width - (isFrom ? (narrow ? 62 : 96) : 44);
  const x = (layer) => left + ((right - left) * layer) / L;
  return { width, narrow, scale, high, middle, name, left, right, x, low: y + 4 };
}

function paint(widths, tests, goal) {
  const isFrom = state.mode === FROM,
    place = layout(goal.widths, isFrom),
    { width, narrow, middle, high, x, name, right } = place;
  const had = drawing.contains(document.activeElement);
  drawing.replaceChildren();
  set(drawing, { viewBox: `0 0 ${width} ${place.low}`, "data-scale": place.scale });
  for (let layer = 0; layer <= L; layer++) {
    const label = layer ? (layer === L && !narrow ? `layer ${layer - 1}` : layer - 1) : narrow ? "in" : "embedding";
    add(drawing, "text", { x: x(layer), y: 12, "text-anchor": "middle", class: "soft" }, label);
  }
  if (isFrom) add(drawing, "text", { x: name, y: 12, class: "soft" }, narrow ? "share" : "share, test");
  drawing.classList.toggle("lit", isFrom && lit !== null);
  if (isFrom) drawFlow(widths, place);
  else drawTurns(widths, place);
  const most = mostOf(isFrom ? widths[0] : tests),
    full = Math.max(...tests.map((number, i) => (i === state.word ? 0 : number)), 1e-6),
    share = Math.max(...widths[0].map((number, i) => (i === state.word ? 0 : number)), 1e-6);
  names.forEach((word, i) => {
    const own = i === state.word,
      all = add(drawing, "g", {
        class: `word${own ? " asks" : ""}${i === lit ? " at" : ""}`,
        role: "radio",
        "aria-checked": own,
        tabindex: own ? 0 : -1,
        "data-word": i,
      });
    add(all, "rect", {
      class: "room",
      x: 0,
      y: middle[i] - high[i] / 2,
      width: isFrom ? place.left - 6 : width,
      height: high[i],
    });
    const text = add(all, "text", { class: "name", x: name - 6, y: middle[i] + 5, "text-anchor": "end" }, word);
    fitText(text, name - 8);
    all.append(" ");
    const number = isFrom ? widths[0][i] : tests[i];
    if (isFrom) {
      const room = place.left - name - (narrow ? 46 : 52);
      /** @type {Object<string, any>} */
      const bars = { claim: [-9, 8, number / share], test: [2, 6, tests[i] / full, { "data-value": tests[i] }] };
      for (const [kind, [y, height, part, more]] of own ? [] : Object.entries(bars)) {
        const box = { x: name, y: middle[i] + y, height, width: Math.max(0.5, part * room) };
        add(all, "rect", { class: kind, ...box, ...more });
      }
    }
    const at = isFrom ? { x: place.left - 10, "text-anchor": "end" } : { x: width, "text-anchor": "end" };
    add(
      all,
      "text",
      { ...at, y: middle[i] + 5, class: i === most ? "number most" : "number", "data-value": number },
      format(number),
    );
    nameShown(
      all,
      `${word} ${format(number)}`,
      isFrom ? `of the vector; the test: ${format(tests[i])}` : "is the turn of its last vector",
    );
    if (isFrom)
      add(
        drawing,
        "text",
        { class: own ? "name asks" : "soft", x: right + 8, y: middle[i] + 5 },
        narrow ? word.slice(0, 8) : word,
      );
  });
  if (had) drawing.querySelector("[tabindex='0']").focus({ preventScroll: true });
}

// Of each word, one lane: as wide as its turn.
function drawTurns(widths, { middle, x, scale }) {
  names.forEach((_, i) => {
    const ends = widths.map((row) => [middle[i] - (row[i] * scale) / 2, row[i] * scale]);
    const d = ends.slice(1).map((end, layer) => bandPath(x(layer), x(layer + 1), ends[layer], end));
    add(drawing, "path", { class: i === state.word ? "lane own" : "lane", d: d.join(""), "data-word": i });
  });
}

// Between the lanes, ribbons as wide as what one gives to the other; `only` leaves what came from one word.
function drawFlow(widths, place) {
  const draw = (nodes, part, kind) => {
    const { middle, x, scale } = place;
    for (let layer = 0; layer < L; layer++) {
      const out = names.map((_, j) => middle[j] - (nodes[layer][j] * scale) / 2),
        into = names.map((_, i) => middle[i] - (nodes[layer + 1][i] * scale) / 2);
      names.forEach((_, i) =>
        names.forEach((_, j) => {
          const wide = widths[layer + 1][i] * split[layer * N + i][j] * part[layer][j] * scale;
          if (wide >= 0.15) {
            const d = bandPath(x(layer) + 3, x(layer + 1) - 3, [out[j], wide], [into[i], wide]);
            add(drawing, "path", { class: `${kind}${j === state.word ? " own" : ""}`, d, "data-word": j });
          }
          out[j] += wide;
          into[i] += wide;
        }),
      );
    }
    nodes.forEach((row, layer) =>
      row.forEach((width, i) => {
        const box = { x: x(layer) - 3, width: 6, y: middle[i] - (width * scale) / 2, height: width * scale };
        if (box.height > 0.3) add(drawing, "rect", { class: `node ${kind}`, ...box });
      }),
    );
  };
  const whole = widths.map((row) => row.map(() => 1));
  draw(widths, whole, "flow");
  if (lit === null) return;
  const reach = reachOf(split, N, L, lit);
  draw(
    widths.map((row, layer) => row.map((width, i) => width * reach[layer][i])),
    reach,
    "way",
  );
}

const wordOf = (target) => {
  const found = target.closest?.("[data-word]");
  return found ? +found.dataset.word : null;
};
function point(word) {
  if (word === lit) return;
  lit = word;
  if (state.mode === FROM) {
    const { widths, tests } = compute(state);
    paint(widths, tests, { widths });
  }
  tell();
}
drawing.addEventListener("pointermove", ({ target, pointerType }) => {
  if (pointerType !== "touch" && !moves.size) point(wordOf(target));
});
drawing.addEventListener("pointerleave", () => !moves.size && point(null));
drawing.addEventListener("click", ({ target }) => {
  const word = wordOf(target);
  if (word !== null) change({ word });
});
onArrows(drawing, (right, down) => {
  change({ word: clamp(state.word + right + down, 0, N - 1) });
  drawing.querySelector("[tabindex='0']").focus();
});

draw();
redraw(figure, draw, drawing);
keepChoices(state, draw);
