// The words of a text as lanes through the layers of an encoder. Where a word goes: how far each vector turns without it,
// measured. Where a vector comes from: its share of each word's vector in each layer, and a measurement beside that.

import { clamp, format, largest, quoted } from "../numbers.js";
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
import { drawnAs } from "../flow.js";
import { FROM, GOES, makeCompute, reachOf, splitOf } from "./compute/path_view.js";
import { flowsOf, lanesOf, placeLanes } from "./path_layout.js";

const { names, layers: L } = data,
  N = names.length;
const split = splitOf(data),
  compute = makeCompute(data);
const state = { mode: GOES, word: data.first };
let lit = null; // the word that is pointed at

explain(
  "Choose a word: click or tap it, or press the arrow keys.",
  `Where it goes: ${data.mask} takes the word\u2019s place, and each number is the turn (1 \u2212 cosine) of another word\u2019s ` +
    "vector. A mask is no other word: in all-MiniLM-L6-v2 " +
    "and one sentence it turned the others by 0.18 on average, and eight adjectives by 0.05 to 0.09. " +
    "Where it comes from: in each layer, all lanes together are 1 wide. Attention and " +
    "residual are split exactly by source, and a part\u2019s share is how much nearer it brings one to the whole (the idea " +
    "of ALTI); the feed-forward network reads one word and stays in its lane. The hollow bars are the test: how far the " +
    `vector turns with ${data.mask} in that word\u2019s place. Where the two disagree, believe the test.`,
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
  const { title, sentence } = wordsOf(widths, tests);
  document.querySelector("h1").textContent = title;
  say(sentence);
}

// The title and the sentence of a state, and of the word that is pointed at.
function wordsOf(widths, tests) {
  const isFrom = state.mode === FROM,
    first = isFrom ? widths[0] : tests,
    most = mostOf(first),
    word = quoted(names[state.word]),
    other = lit === null || lit === state.word ? null : quoted(names[lit]);
  const order = [...names.keys()].filter((i) => i !== state.word).sort((a, b) => tests[b] - tests[a]),
    isMark = (i) => data.marks.includes(names[i]),
    kinds = { words: order.filter((i) => !isMark(i)).slice(0, 3), marks: order.filter(isMark).slice(0, 1) },
    list = (some) => some.map((i) => `${quoted(names[i])} ${format(tests[i])}`).join(", "),
    turned = Object.keys(kinds)
      .filter((kind) => kinds[kind].length)
      .map((kind) => `${kind} ${list(kinds[kind])}`);
  if (isFrom) {
    return {
      title: `By an estimate, ${format(first[state.word])} of the last vector of ${word} comes from itself, ${format(first[most])} from ${quoted(names[most])}`,
      sentence: other
        ? `${other} gives ${word} ${format(first[lit], 3)}, over all ways. The test: with ${data.mask} for ${other} ` +
          `the vector of ${word} turns by ${format(tests[lit], 3)}.`
        : `By the test, ${word} turns most with ${data.mask} for these: ${turned.join("; ")}.`,
    };
  }
  const after = other && widths.map((row) => format(row[lit])).join(", ");
  return {
    title: `With ${data.mask} for ${word}, no word turns more than ${quoted(names[most])}: ${format(first[most])} (1 \u2212 cosine)`,
    sentence: other
      ? `With ${data.mask} for ${word}, ${other} turns by ${after}: in the embedding, then after each layer.`
      : `Most turned: ${turned.join("; ")}. A lane is as wide as the root of its number, which grows like the angle.`,
  };
}

function paint(widths, tests, goal) {
  const isFrom = state.mode === FROM,
    width = widthNow(),
    place = placeLanes(goal.widths, isFrom, width),
    { narrow, middle, high, x, name, left, right } = place;
  const had = drawing.contains(document.activeElement);
  drawing.replaceChildren();
  set(drawing, { viewBox: `0 0 ${width} ${place.low}`, "data-scale": place.scale });
  for (let layer = 0; layer <= L; layer++) {
    const label = layer ? (layer === 1 && !narrow ? "layer 0" : layer - 1) : narrow || isFrom ? "in" : "embedding";
    const start = isFrom && !layer ? { x: left - 4 } : { x: x[layer], "text-anchor": "middle" };
    add(drawing, "text", { ...start, y: 12, class: "soft" }, label);
  }
  const columns = isFrom ? { share: left - 54, test: left - 14 } : { turn: width };
  for (const [text, x] of Object.entries(columns))
    add(drawing, "text", { x, y: 12, "text-anchor": "end", class: "soft" }, text);
  drawing.classList.toggle("lit", isFrom && lit !== null);
  if (isFrom) drawFlow(widths, place);
  else drawTurns(widths, place);
  const most = mostOf(isFrom ? widths[0] : tests),
    full = Math.max(...widths[0], ...tests.filter((_, i) => i !== state.word), 1e-6); // of both kinds of bar
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
      width: isFrom ? left - 6 : width,
      height: high[i],
    });
    const text = add(all, "text", { class: "name", x: name - 6, y: middle[i] + 5, "text-anchor": "end" }, word);
    fitText(text, name - 8);
    all.append(" ");
    const number = isFrom ? widths[0][i] : tests[i];
    if (isFrom) {
      const bars = { claim: [-9, 8, number], test: [2, 6, own ? 0 : tests[i]] };
      for (const [kind, [y, height, value]] of Object.entries(bars)) {
        const box = { x: name, y: middle[i] + y, height, width: (value / full) * (left - 88 - name) };
        if (value > 0) add(all, "rect", { class: kind, ...box, "data-value": value });
      }
    }
    const end = { y: middle[i] + 5, "text-anchor": "end" },
      kind = i === most ? "number most" : "number";
    add(all, "text", { ...end, x: columns.share ?? width, class: kind, "data-value": number }, format(number));
    all.append(" ");
    const test = own ? "\u2013" : format(tests[i]);
    if (isFrom) add(all, "text", { ...end, x: columns.test, class: "number" }, test);
    const seen = [word, format(number), ...(isFrom ? [test] : [])].join(" ");
    nameShown(all, seen, isFrom ? "are its share and the test" : "is the turn of its last vector");
    if (isFrom && own) {
      const shown = narrow ? word.slice(0, 6) : word;
      add(drawing, "text", { class: "name asks", x: right + 8, y: middle[i] + 5 }, shown);
    }
  });
  if (had) drawing.querySelector("[tabindex='0']").focus({ preventScroll: true });
}

// Of each word, one lane: a line, and as wide as the root of its turn.
function drawTurns(widths, place) {
  const drawn = widths.map((row) => row.map(Math.sqrt)),
    { x, middle } = place;
  lanesOf({ ...place, drawn }).forEach((d, i) => {
    add(drawing, "path", { class: "still-lane", d: `M${x[0]} ${middle[i]}H${x[L]}` });
    add(drawing, "path", { class: i === state.word ? "lane own" : "lane", d, "data-word": i });
  });
}

// Between the lanes, ribbons as wide as what one gives to the other; `only` leaves what came from one word.
function drawFlow(widths, place) {
  const draw = (nodes, part, kind) => {
    const { middle, x, scale } = place,
      given = (layer, i, j) => widths[layer + 1][i] * split[layer * N + i][j];
    for (const each of flowsOf(nodes, given, part, place)) {
      const own = each.i === state.word ? " own" : "";
      add(drawing, "path", { ...drawnAs(`${kind}${own}`, each), "data-word": each.i });
    }
    nodes.forEach((row, layer) =>
      row.forEach((width, i) => {
        const box = { x: x[layer] - 3, width: 6, y: middle[i] - (width * scale) / 2, height: width * scale };
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
  const { widths, tests } = compute(state);
  if (state.mode === FROM) paint(widths, tests, { widths });
  say(wordsOf(widths, tests).sentence);
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
