// A head view: what each token gives to each, as a flow. The ribbons that leave a
// token are together as wide as 1, and a token on the right is as high as what it gets. Several heads are drawn as their
// mean.

import { capital, format, largest, quoted, sum, tokenName } from "./numbers.js";
import { add, ARROWS, by, fitText, set } from "./elements.js";
import { data, figure, glide, say, tick } from "./draggable/figure.js";
import { drawnAs, placeFlow, ribbonsBetween, shareOf } from "./flow.js";
import { between, isMark, keep, panel, start, tools, vis } from "./reader.js";
import { headMap } from "./draggable/head_map.js";

const MOST_RIBBONS = 3000, // that are drawn while no token is chosen, the widest
  MOST_MOVED = 4000, // weights that are drawn anew in each frame of a move
  LEAST = 0.005; // of a weight that is written: smaller ones would read 0.00
const side = add(figure, "div", { class: "side" });
const map = add(side, "div", { class: "map" }),
  question = add(map, "p");
side.append(by("say"));
const svg = add(vis, "svg", { role: "group", "aria-label": "who gives to whom" });
const state = { heads: [], lit: null, pinned: null, begins: null }; // heads are [layer, head]; the others { i, from }
const { include_layers: layers } = data,
  A = data.total_heads,
  key = ([layer, head]) => layer * A + head;
const withoutMarks = tick(tools, "without [CLS], [SEP], …", false, () => view.draw()),
  several = tick(tools, "mean of several heads", false, () => {});
let weights = [], // the mean of the chosen heads
  goal = [], // what is drawn of it
  marks = [], // which of those are no words
  shown = null, // the weights on their way
  shares = []; // of each head, for the map

const heads = headMap(map, layers, A, "checkbox", (layer, head, event) => {
  const own = headsAt(layer, head),
    isIn = own.every((one) => state.heads.some((other) => key(one) === key(other)));
  if (!event.shiftKey && !several.checked) state.heads = own;
  else if (!isIn) state.heads = [...state.heads.filter((one) => !own.some((o) => key(o) === key(one))), ...own];
  else if (state.heads.length > own.length)
    state.heads = state.heads.filter((o) => !own.some((x) => key(x) === key(o)));
  view.draw();
});

// The heads of a cell of the map: one, those of a layer, or all.
function headsAt(layer, head) {
  const some = layer < layers.length ? [layer] : layers.map((_, at) => at);
  return some.flatMap((one) => (head < A ? [[one, head]] : Array.from({ length: A }, (_, each) => [one, each])));
}

const meanOf = (some) => {
  const all = some.map(([layer, head]) => panel().attn[layer][head]);
  if (all.length === 1) return all[0];
  return all[0].map((row, i) => row.map((_, j) => sum(all.map((one) => one[i][j])) / all.length));
};

const hasBoth = () => marks.includes(true) && marks.includes(false);
const nameInTitle = (token) => (/^(\[.+\]|<.+>)$/.test(token) ? token : quoted(token));
const isSame = (one, other) => one && other && one.i === other.i && one.from === other.from;
const focus = () => state.pinned ?? state.lit ?? state.begins;
const isLeftOut = (i, j) => withoutMarks.checked && (marks[j] || isMark(panel().left_text[i]));

const view = {
  drawn: () => panel().attn[0],
  first: () => ({ layer: layers[state.heads[0][0]], heads: headsOf(state.heads[0][0]) }),
  state: () => [headsInWords(), withoutMarks.checked && "without marks"],
  words() {
    const { gives, gets } = placeFlow(goal),
      most = largest(gets.map((number, j) => (hasBoth() && marks[j] ? -1 : number))),
      [toWords, toMarks] = [false, true].map((kind) => sum(gets.filter((_, j) => marks[j] === kind))),
      isOfWords = toWords >= toMarks;
    svg.classList.toggle("of-words", isOfWords);
    const tell = (number, where) => ({
      title: `${capital(headsInWords())}: ${format(number, 1)} of the ${gives.length} tokens\u2019 attention goes to ${where}`,
      help: gives.every((number) => number > 0.99)
        ? "Every word on the left gives 1, and a word on the right is as high as what it gets."
        : "A word on the left is as high as what it gives here, a word on the right as what it gets.",
    });
    const name = nameInTitle(panel().right_text[most]);
    if (!hasBoth()) return tell(gets[most], name);
    if (isOfWords) return tell(toWords, `words, ${format(gets[most], 1)} to ${name} alone`);
    const some = [...new Set(panel().right_text.filter((_, j) => marks[j] && gets[j] >= 0.05))].map(nameInTitle);
    return tell(toMarks, some.length > 4 ? "marks" : some.join(", ").replace(/, ([^,]*)$/, " and $1"));
  },
  keeps: () => ({
    heads: state.heads.map(([layer, head]) => [layers[layer], head]),
    pinned: state.pinned ?? undefined,
    without: withoutMarks.checked || undefined,
  }),
  begin({ heads: kept = [], pinned, without }) {
    readTokens();
    const there = kept
      .map(([layer, head]) => [layers.indexOf(layer), head])
      .filter(([at, head]) => at >= 0 && head < A);
    const first = data.layer === null ? 0 : layers.indexOf(data.layer);
    state.heads = there.length ? there : (data.heads ?? []).map((head) => [first, head]);
    if (!state.heads.length) state.heads = [mostForWords(data.layer === null ? layers.map((_, at) => at) : [first])];
    withoutMarks.checked = Boolean(without);
    if (pinned && pinned.i < panel()[pinned.from ? "left_text" : "right_text"].length) state.pinned = pinned;
    else if (Number.isInteger(data.token)) state.begins = { i: data.token, from: true };
    for (const type of ["pointerenter", "focusin"]) vis.addEventListener(type, () => point(null), { once: true });
  },
  forget() {
    Object.assign(state, { pinned: null, lit: null, begins: null });
    readTokens();
  },
  draw,
  arrange: () => paint(),
  at(target) {
    const { i, j } = target.dataset ?? {};
    return j === undefined || i === undefined ? null : describePair(+i, +j);
  },
};

function readTokens() {
  marks = panel().right_text.map(isMark);
  const each = layers.map((_, layer) =>
    Array.from({ length: A }, (_, head) => shareOf(panel().attn[layer][head], marks)),
  );
  const mean = (numbers) => sum(numbers) / numbers.length; // the share of a mean is the mean of the shares
  shares = each.map((row, layer) => [...row, hasBoth() ? mean(row) : shareOf(meanOf(headsAt(layer, A)), marks)]);
  if (layers.length > 1) {
    const isAll = hasBoth() ? mean(each.flat()) : shareOf(meanOf(headsAt(layers.length, A)), marks);
    shares.push(Array(A + 1).fill(isAll));
  }
  question.textContent = `All ${layers.length * A} heads: the share that ${hasBoth() ? "goes to words" : "the token that gets most gets"}`;
}

// The plain call begins with the head that gives most to words.
function mostForWords(some) {
  const ranked = some.flatMap((layer) => headsAt(layer, A));
  return ranked[largest(ranked.map(([layer, head]) => shares[layer][head]))];
}

function headsOf(layer) {
  return state.heads.filter(([at]) => at === layer).map(([, head]) => head);
}

function headsInWords() {
  const { length } = state.heads,
    some = [...new Set(state.heads.map(([at]) => at))].sort((a, b) => a - b);
  if (length === 1) return `layer ${layers[some[0]]}, head ${state.heads[0][1]}`;
  if (length === layers.length * A) return `mean of all ${length} heads`;
  if (length === A && some.length === 1) return `layer ${layers[some[0]]}, mean of all heads`;
  if (length > 6) return `mean of ${length} heads`;
  const named = some.map(
    (at) => `layer ${layers[at]}, head${headsOf(at).length > 1 ? "s" : ""} ${headsOf(at).join(", ")}`,
  );
  return `mean of ${named.join(", and ")}`;
}

function draw() {
  weights = meanOf(state.heads);
  goal = weights.map((row, i) => row.map((weight, j) => (isLeftOut(i, j) ? 0 : weight)));
  const [S, T] = [weights.length, weights[0].length];
  const isChosen = (layer, head) => headsAt(layer, head).every((one) => state.heads.some((o) => key(o) === key(one)));
  heads.show(shares, isChosen, hasBoth() ? " goes to words" : "");
  heads.paint(shares);
  const put = (numbers) => {
    shown = Array.from({ length: S }, (_, i) => numbers.slice(i * T, (i + 1) * T));
    paint();
  };
  if (S * T > MOST_MOVED) put(goal.flat());
  else glide(svg, goal.flat(), put);
}

let place = null,
  ribbons = []; // { i, j, weight, d, faint }

function paint() {
  if (!shown) return;
  place = placeFlow(shown);
  const { left_text: left, right_text: right } = panel(),
    { unit, high, gives, gets, tops, bases } = place,
    width = Math.max(300, Math.min(560, vis.clientWidth || 560)),
    had = document.activeElement?.dataset?.token;
  set(svg, { viewBox: `0 0 ${width} ${high + 8}`, width, height: high + 8 });
  svg.replaceChildren();
  const room = (side, words) => {
    const sample = add(svg, "text", { "font-size": 14 });
    const wide = words.map((word) => ((sample.textContent = word), sample.getComputedTextLength()));
    sample.remove();
    return Math.min(Math.max(...wide) + side, 0.36 * width);
  };
  const [x0, x1] = [room(52, left), width - room(58, right)];
  Object.assign(place, { width, x0, x1 });
  const wide = shown.map((row) => row.map((weight) => weight * unit));
  ribbons = ribbonsBetween(wide, tops, bases, x0 + 7, x1 - 7)
    .map((each) => ({ ...each, weight: shown[each.i][each.j] }))
    .sort((one, other) => other.weight - one.weight); // the narrow ones above the wide ones
  const base = add(svg, "g", { class: "base" });
  for (const each of ribbons.slice(0, MOST_RIBBONS)) addRibbon(base, each);
  add(svg, "g", { class: "chosen" });
  left.forEach((word, i) => addToken(word, i, true, tops[i], gives[i] * unit));
  right.forEach((word, j) => addToken(word, j, false, bases[j], gets[j] * unit));
  for (const from of [true, false]) {
    const own = tokens(from);
    (own.find(({ dataset }) => dataset.token === had) ?? own[0]).setAttribute("tabindex", 0);
  }
  light();
  if (had) svg.querySelector(`[data-token="${had}"]`)?.focus({ preventScroll: true });
}

function addRibbon(parent, each) {
  const { i, j, weight } = each,
    kind = marks[j] ? "ribbon rest" : "ribbon";
  add(parent, "path", { ...drawnAs(kind, each), "data-i": i, "data-j": j, "data-value": weight });
}

const tokens = (from) => [...svg.querySelectorAll(from ? "[data-token^=L]" : "[data-token^=R]")];

function addToken(word, i, from, top, high) {
  const { width, x0, x1 } = place,
    middle = top + high / 2,
    edge = 24;
  const all = add(svg, "g", {
    class: from ? "token asks" : "token",
    "data-token": `${from ? "L" : "R"}${i}`,
    tabindex: -1,
    role: "button",
  });
  const box = {
    x: from ? 2 : x1 + 1,
    width: from ? x0 - 4 : width - x1 - 3,
    y: middle - edge / 2,
    height: edge,
    rx: 4,
  };
  add(all, "rect", { class: "room", ...box });
  add(all, "rect", {
    class: from ? "node asks" : marks[i] ? "node rest" : "node",
    x: from ? x0 : x1 - 6,
    y: top,
    width: 6,
    height: Math.max(1, high),
  });
  const text = add(
    all,
    "text",
    { x: from ? x0 - 8 : x1 + 6, y: middle + 5, "text-anchor": from ? "end" : "start" },
    word,
  );
  fitText(text, (from ? x0 : width - x1) - 52);
  all.append(" "); // between the texts, for programs that read what is shown
  add(all, "text", { class: "number", x: from ? 4 : width - 4, y: middle + 5, "text-anchor": from ? "start" : "end" });
}

// What a pair has in what is chosen: of a token, its weights with the other side; of nothing, what the right side gets.
function light() {
  const now = focus();
  svg.classList.toggle("lit", Boolean(now));
  const chosen = svg.querySelector(".chosen");
  chosen.replaceChildren();
  if (now) {
    for (const each of ribbons) if ((now.from ? each.i : each.j) === now.i) addRibbon(chosen, each);
  }
  for (const from of [true, false]) {
    tokens(from).forEach((token, at) => {
      const weight = now && now.from !== from ? (from ? shown[at][now.i] : shown[now.i][at]) : null;
      const number = now ? weight : from ? null : place.gets[at];
      const own = { i: at, from };
      token.lastChild.textContent = number === null || number < LEAST ? "" : format(number, number >= 10 ? 1 : 2);
      token.lastChild.dataset.value = number ?? "";
      token.classList.toggle("at", Boolean(isSame(now, own)));
      token.classList.toggle("pinned", Boolean(isSame(state.pinned, own)));
      set(token, { "aria-label": nameOfToken(own), "aria-pressed": Boolean(isSame(state.pinned, own)) });
    });
  }
  const count = weights.length * weights[0].length;
  const few =
    count > MOST_RIBBONS
      ? `Drawn are the ${MOST_RIBBONS.toLocaleString("en")} widest of ${count.toLocaleString("en")} ribbons; choose a word for all of its own.`
      : "";
  say(now ? describeToken(now) : few, !now);
}

// The partners of a token, the largest weight first.
function partnersOf({ i, from }) {
  return (from ? shown[i] : shown.map((row) => row[i]))
    .map((weight, at) => ({ weight, at }))
    .filter(({ weight }) => weight >= LEAST)
    .sort((one, other) => other.weight - one.weight);
}

const sides = ({ from }) => (from ? [panel().left_text, panel().right_text] : [panel().right_text, panel().left_text]);

function nameOfToken(token) {
  const [own, others] = sides(token),
    [most] = partnersOf(token);
  const number = svg.querySelectorAll(`[data-token^=${token.from ? "L" : "R"}] .number`)[token.i].textContent;
  const total = token.from ? "gives" : `gets ${format(place.gets[token.i])},`;
  return `${[own[token.i], number].filter(Boolean).join(" ")}, ${total} ${most ? `most ${token.from ? "to" : "from"} ${tokenName(others, most.at)}, ${format(most.weight)}` : "nothing"}`;
}

function describeToken(token) {
  const [own, others] = sides(token);
  const list = partnersOf(token)
    .slice(0, 3)
    .map(({ weight, at }) => `${format(weight)} ${token.from ? "to" : "from"} ${quoted(tokenName(others, at))}`);
  const verb = token.from ? "gives" : `gets ${format(place.gets[token.i])}:`;
  return `In ${state.heads.length > 1 ? "the " : ""}${headsInWords()}, ${quoted(tokenName(own, token.i))} ${verb} ${list.join(", ") || "nothing"}.`;
}

// A ribbon: of several heads, each one's weight, too.
function describePair(i, j) {
  const mean = `${between(i, j)} ${format(weights[i][j])}`;
  if (state.heads.length < 2) return `${headsInWords()}: ${mean}`;
  const each = state.heads
    .map(([layer, head]) => ({ name: `${layers[layer]}-${head}`, weight: panel().attn[layer][head][i][j] }))
    .sort((one, other) => other.weight - one.weight)
    .slice(0, 6);
  return `${mean} (layer-head ${each.map(({ name, weight }) => `${name}: ${format(weight)}`).join(", ")})`;
}

// The pointer, a finger and the keyboard

const tokenOf = (target) => {
  const [side, ...at] = target.closest?.("[data-token]")?.dataset.token ?? "";
  return side ? { i: +at.join(""), from: side === "L" } : null;
};
function point(token) {
  if (!state.begins && (isSame(token, state.lit) || (!token && !state.lit))) return;
  Object.assign(state, { lit: token, begins: null });
  if (!state.pinned) light();
}
svg.addEventListener("pointermove", ({ target, pointerType }) => pointerType !== "touch" && point(tokenOf(target)));
svg.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && point(null));
svg.addEventListener("focusin", ({ target }) => {
  tokens(tokenOf(target).from).forEach((one) => set(one, { tabindex: one === target ? 0 : -1 }));
  if (target.matches(":focus-visible")) point(tokenOf(target));
});
svg.addEventListener("focusout", () => point(null));
function press(token) {
  state.pinned = isSame(token, state.pinned) ? null : token;
  light();
  keep();
}
svg.addEventListener("click", ({ target }) => {
  const token = tokenOf(target);
  if (token) press(token);
});
svg.addEventListener("keydown", (event) => {
  const token = tokenOf(event.target),
    [right, down] = ARROWS[event.key] ?? [0, 0];
  if (/^(Enter| )$/.test(event.key) && !event.shiftKey) press(token);
  else if (event.key === "Escape" && state.pinned) press(state.pinned);
  else if (down) tokens(token.from)[token.i + down]?.focus();
  // across, to the token with which it has most to do
  else if (right && right > 0 === token.from) tokens(!token.from)[partnersOf(token)[0]?.at ?? 0].focus();
  else return;
  event.preventDefault();
});

start(view, data.code);
