// A sentence in reading order: ribbons from one token, as wide as its attention weight, and a map of all heads. A
// second sentence or model is drawn below the same words.

import { clamp, format, quoted } from "../numbers.js";
import { add, by, onArrows, set } from "../elements.js";
import { choice, data, explain, figure, glide, keepChoices, nameShown, redraw, say, shownBy, tick } from "./figure.js";
import { headMap } from "./head_map.js";
import {
  best,
  CUTS,
  degrees,
  drawing,
  drawn,
  findSlots,
  gather,
  has,
  heads,
  idsOf,
  isEven,
  L,
  labels,
  layers,
  models,
  moved,
  movedOnAverage,
  nameOf,
  row,
  rows,
  sentence,
  short,
  shown,
  sideNames,
  sizes,
  state,
  title,
  turns,
  turnsOf,
  unpackTurns,
  unpackWeights,
} from "./sentence_texts.js";
import { measure, put } from "./sentence_ribbons.js";

explain(
  "Choose a word and a head. All ribbons of a text together are 1 wide.",
  "Click or tap them, or press the arrow keys. The bluer a head, the more it gives or, of two texts, the more of its " +
    "attention moves. The mean of all heads is an estimate of which words move a vector; to be sure, change the word and look.",
);

const controls = add(figure, "div", { class: "controls" });
const BOTH = "both in one picture";
if (sizes.length > 1) {
  const names = [...labels, BOTH],
    first = state.both ? BOTH : labels[0];
  choice(controls, models ? "Model:" : "Exchange a word:", names, first, (name) => {
    change(name === BOTH ? { both: true, text: state.text || 1 } : { both: false, text: labels.indexOf(name) });
  });
}
if (drawn.words.ids.some((ids) => new Set(ids).size < ids.length)) {
  tick(controls, "whole words", state.mode === "words", (on) => change({ mode: on ? "words" : "pieces" }));
}
if (data.turns) {
  const names = ["no", ...CUTS],
    first = names[state.cut === null ? 0 : state.cut + 1];
  choice(controls, "Fill by how far the vector turns:", names, first, (name) =>
    change({ cut: names.indexOf(name) ? names.indexOf(name) - 1 : null }),
  );
}
const sides = add(figure, "p", { class: "sides" });
const svg = add(figure, "svg", { class: "sentence", role: "radiogroup", "aria-label": "the token that looks" });
let isAlone = false; // others are drawn without outlines
let was = state; // what was drawn before
let own = null; // the view's own rows, once the page around it has sent others

function build() {
  const { slots } = drawing;
  svg.replaceChildren();
  drawing.ribbons = [0, 1].map(() => slots.map(() => add(svg, "path")));
  drawing.cores = slots.map(() => add(svg, "path"));
  drawing.outlines = [0, 1].map(() => slots.map(() => add(svg, "path", { class: "outline" })));
  drawing.parts = slots.map(() => add(svg, "rect", { rx: 3 }));
  drawing.tags = slots.map(() => add(svg, "text", { "text-anchor": "middle" }));
  drawing.words = slots.map((columns) => {
    const all = add(svg, "g", { role: "radio" });
    const word = {
      all,
      room: add(all, "rect", { class: "room" }),
      box: add(all, "rect", { rx: 5 }),
      name: add(all, "text", { class: "name" }),
    };
    all.append(" "); // between the texts, for programs that read what is shown
    for (const kind of ["second", "number", "more"]) {
      word[kind] = add(all, "text", { class: kind });
      all.append(" ");
    }
    word.line = add(all, "line", { class: "swapped" });
    all.addEventListener("click", () => change({ token: columns[columns[0] > state.token ? 0 : columns.length - 1] }));
    return word;
  });
}
const below = add(figure, "div", { class: "below" });
below.append(by("say"));
const map = add(below, "div", { class: "map" }),
  asked = add(map, "label");
const question = add(asked, "span"),
  target = add(asked, "select");
const heatmap = headMap(map, layers, heads, "radio", (layer, head) => change({ layer, head }));
target.addEventListener("change", () =>
  change(state.both ? { all: target.selectedIndex === 1 } : { target: drawing.slots[target.selectedIndex][0] }),
);

function change(chosen) {
  state.before = "text" in chosen && !chosen.both && !state.both ? { ...state, before: null } : null;
  if ("mode" in chosen && chosen.mode !== state.mode) {
    for (const [text, ids] of drawn[state.mode].ids.entries()) {
      const i = ids.indexOf(state.token);
      if (i >= 0) Object.assign(chosen, { token: drawn[chosen.mode].ids[text][i] });
    }
  }
  Object.assign(state, chosen);
  if (!shown().some((text) => has(text, state.token))) state.token = idsOf(state.text)[0];
  if ("token" in chosen || state.both || ("both" in chosen && !state.before) || state.target === state.token)
    state.target = best();
  draw();
}

function draw() {
  const found = findSlots(),
    isNew = JSON.stringify(found) !== JSON.stringify(drawing.slots);
  if (isNew) {
    drawing.slots = found;
    build();
  }
  const turned = turnsOf();
  figure.classList.toggle("two", Boolean(state.both));
  figure.classList.toggle("cut", Boolean(turned));
  drawing.place = measure();
  const { slots, words, ribbons, parts, tags, place } = drawing,
    { size, width, height } = place,
    texts = shown(),
    token = slots.findIndex((columns) => columns.includes(state.token));
  const [shares, others] = [0, 1].map((side) => (texts.length > side ? gather(row(texts[side])) : slots.map(() => 0)));
  const filled = turned ? gather(turned) : slots.map(() => 0);
  const hasMost = state.both || !isEven(row(state.text)),
    strongest = slots.findIndex((columns) => hasMost && columns.includes(best()));
  const [names, second] = texts.map((text) => slots.map((columns) => nameOf(text, columns)));
  const asker = names[token] || second[token];
  set(svg, { viewBox: `0 0 ${width} ${height}`, "data-whole": place.whole });
  words.forEach(({ all, name, second: other, line }, i) => {
    const asks = i === token,
      differs = place.stacked[i];
    const kind = `${asks ? " asks" : ""}${i === strongest ? " most" : ""}`;
    const parted = { word: all, ribbon: ribbons[0][i], part: parts[i], label: tags[i] };
    for (const [each, element] of Object.entries(parted)) set(element, { class: each + kind, "data-value": shares[i] });
    set(ribbons[1][i], { class: `ribbon below${kind}`, "data-value": others[i] });
    all.classList.toggle("differs", differs);
    set(all, { "aria-checked": asks, tabindex: asks ? 0 : -1, "data-other": others[i] });
    name.textContent = short(names[i] || (state.both ? "\u2013" : ""), place.most);
    other.textContent = differs ? short(second[i] || "\u2013", place.most) : "";
    const whole = name.textContent === names[i] ? "" : `, ${names[i]}`;
    const numbers = [shares[i], ...(state.both ? [others[i]] : [])].map((share) => format(share));
    if (turned) numbers.push(degrees(filled[i]));
    set(drawing.cores[i], { class: `core${kind}`, "data-turn": turned ? filled[i] : "" });
    const seen = [name.textContent, other.textContent, ...numbers].filter(Boolean).join(" ");
    nameShown(all, seen, `${asks ? "to itself" : `from ${asker}`}${whole}`);
    set(name, { "font-size": size });
    set(other, { "font-size": size });
    line.style.display = !state.both && new Set(sizes.map((_, text) => nameOf(text, slots[i]))).size > 1 ? "" : "none";
  });
  const given = drawMap(names, asker),
    theirs = texts.map((text, side) => outlinesOf(text, side ? others : shares));
  figure.querySelector(":scope > .second")?.remove();
  sides.replaceChildren(
    ...(state.both ? texts : []).map((text, side) => {
      const element = document.createElement("span");
      element.textContent = `${sideNames()[side]}: ${labels[text]}`;
      return element;
    }),
  );
  sides.lastChild?.classList.add("second");
  svg.after(...(place.row ? sides.querySelectorAll(".second") : [])); // each label on its own side
  const goal = [place.at[token], 1, ...shares, ...others, ...filled.map((turn) => turn || 0), ...given],
    S = slots.length,
    across = heads + 1;
  glide(
    svg,
    goal,
    ([from, fold, ...numbers]) => {
      const moving = [numbers.slice(0, S), numbers.slice(S, 2 * S)];
      put(token, from, moving, [shares, others], fold, theirs, turned && numbers.slice(2 * S, 3 * S));
      heatmap.paint(heatmap.cells.map((_, at) => numbers.slice(3 * S + at * across, 3 * S + (at + 1) * across)));
    },
    isNew ? null : folded(shownBy.get(svg), S),
  );
  was = { ...state };
  const isReplaced = theirs.some((outline) => outline);
  say(sentence(token, shares, others, names, second) + (isReplaced ? " Dashed: the weights of the model itself." : ""));
  document.querySelector("h1").textContent = title();
}

// Where a text changes its side, its ribbons begin on the one where they were, and fold over.
function folded(from, S) {
  const single = state.both ? was : state;
  if (!from || state.both === was.both || !single.text) return from;
  const [place, , ...numbers] = from,
    none = Array(S).fill(0),
    sides = state.both ? [none, numbers.slice(0, S)] : [numbers.slice(S, 2 * S), none];
  return [place, -1, ...sides.flat(), ...numbers.slice(2 * S)];
}

// The view's own shares of a text, if others are drawn in their place.
function outlinesOf(text, shares) {
  const theirs = own && !isAlone ? gather(row(text, state, own)) : null;
  return theirs?.some((share, i) => Math.abs(share - shares[i]) > 0.005) ? theirs : null;
}

// Fill the map: what each head gives from the chosen token to the target or, of two texts, how much of it moves.
function drawMap(names, asker) {
  const numbers = heatmap.cells.map((one, layer) =>
    one.map((cell, head) => {
      if (cell.tagName !== "BUTTON") return 0;
      if (turnsOf()) return head < heads ? turnsOf({ ...state, layer, head })[state.target] : Number.NaN;
      if (!state.both) return row(state.text, { ...state, layer, head })[state.target];
      return state.all ? movedOnAverage(layer, head) : (moved({ ...state, layer, head }) ?? 0);
    }),
  );
  drawing.given = numbers;
  const turned = turnsOf(),
    most = turned || state.both ? Math.max(...numbers.flat().filter(Number.isFinite), 0.005) : 1,
    unit = turned ? "\u00b0" : "",
    isChosen = (layer, head) => layer === state.layer && head === state.head;
  heatmap.show(numbers, isChosen, unit, [`0${unit}`, turned ? degrees(most) : format(most)]);
  target.replaceChildren();
  if (state.both) {
    question.textContent = `All ${L * heads} heads: the attention that moves, of`;
    [quoted(short(asker)), "all tokens"].forEach((name, i) => {
      add(target, "option", {}, name).selected = state.all === (i === 1);
    });
  } else {
    question.textContent = turned
      ? `All ${L * heads} heads: how far ${quoted(short(asker))} turns without its link${state.cut ? ", its weight shared," : ""} to`
      : `All ${L * heads} heads: what ${quoted(short(asker))} gives to`;
    names.forEach((name, i) => {
      add(target, "option", {}, short(name)).selected = drawing.slots[i].includes(state.target);
    });
  }
  return numbers.flat().map((number) => number / most || 0);
}

onArrows(svg, (on, down) => {
  const { slots, words, place } = drawing,
    at = clamp(Math.min(state.layer, L - 1) * heads + Math.min(state.head, heads - 1) + down, 0, L * heads - 1);
  const now = place.order.findIndex((i) => slots[i].includes(state.token)),
    next = slots[place.order[clamp(now + on, 0, slots.length - 1)]];
  change(
    on
      ? { token: next[next[0] > state.token ? 0 : next.length - 1] }
      : { layer: Math.floor(at / heads), head: at % heads },
  );
  words[slots.findIndex((columns) => columns.includes(state.token))].all.focus();
});

// A page around this view may send `weights` of the head that is shown, a matrix for each text. They are drawn in place of
// the view's own, which then have dashed outlines, unless they are to be `alone`.
addEventListener("message", ({ source, data: { weights, alone } }) => {
  if (source !== window.parent || !rows.length || !weights || state.head === heads) return;
  isAlone = Boolean(alone);
  own ??= rows.map((all) => [...all]);
  weights.forEach((matrix, text) => {
    rows[text].splice((state.layer * heads + state.head) * sizes[text], matrix.length, ...matrix);
  });
  change({});
});

// A choice that is remembered is made again when all is unpacked.
const measured = data.turns ? unpackTurns(data.turns, sizes[0]) : [];
Promise.all([measured, ...data.weights.map((packed, text) => unpackWeights(packed, sizes[text]))]).then((all) => {
  turns.push(...all[0]);
  rows.push(...all.slice(1));
  state.target = best();
  draw();
  redraw(figure, draw, svg);
  keepChoices();
});
