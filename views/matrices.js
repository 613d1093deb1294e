// A model view: draws each head as a matrix of its weights, a row for each token
// that looks and a column for each token that it looks at, in squares that can be sorted by kind.

import { root } from "./frame.js";
import { shareOf } from "./flow.js";
import { blend, capital, clamp, format, largest, tokenName } from "./numbers.js";
import { add, ARROWS, by, ramp, set, stopsOf } from "./elements.js";
import { data, say } from "./draggable/figure.js";
import { between, chosen, isMark, panel, showTip, start, vis } from "./reader.js";
import { AXIS, kindOf, placeHeads } from "./squares.js";

const SHARPEST = 120; // rows or columns of a square; of more, the largest weight of neighbours is shown
const WRITTEN = { from: 0.1, cell: 24 }; // a weight that is written, and the pixels that this needs
const KINDS = {
  itself: "The token itself",
  before: "The token before",
  after: "The token after",
  word: "One word",
  mark: "One mark",
  spread: "Spread out",
};
const RULE =
  "What each head looks at, in this text: how much weight its tokens give on average to themselves, to the token " +
  "before, to the token after, or to one fixed token (without what that token gives itself). " +
  "The largest of these is the kind of the head if it is more than half. If none is, the head is spread out.";
const REST = "Click or tap a square to enlarge that head.";
const [rule, legend] = ["rule", "scale"].map((id) => add(vis.parentNode, "p", { id }));
vis.before(rule);
rule.textContent = RULE;
say(REST, true);

const state = { layer: null, head: null }; // of the enlarged head, by their places in the drawing
const byKind = () => chosen("order") === "kinds";
const enlarged = () => state.layer !== null;
const nameOfHead = ({ layer, head }) => `layer ${data.include_layers[layer]}, head ${data.include_heads[head]}`;
const weightsOf = () => panel().attn[state.layer][state.head];
const describeWeight = (row, column) =>
  `${nameOfHead(state)}: ${between(row, column)} ${format(weightsOf()[row][column])}`;

const view = {
  drawn: () => panel().attn,
  first: () => ({}),
  words: () => ({ title: title() }),
  state: () => [enlarged() ? nameOfHead(state) : `all ${drawn.length} heads`, byKind() && RULE],
  keeps: () => ({
    order: byKind() ? "kinds" : undefined,
    heads: enlarged() ? [[data.include_layers[state.layer], data.include_heads[state.head]]] : undefined,
    enlarged: enlarged() ? undefined : false,
  }),
  begin({ order, heads: [first = []] = [], enlarged: open = true }) {
    if (order) by("order").value = order;
    const [layer, head] = [data.include_layers.indexOf(first[0]), data.include_heads.indexOf(first[1])];
    if (open) Object.assign(state, layer >= 0 && head >= 0 ? { layer, head } : mostForWords());
  },
  draw: drawSquares,
  at(target, x, y) {
    const { row, column } = target.matches(".cells") ? cellAt(target, x, y) : {};
    return row === undefined ? null : describeWeight(row, column);
  },
  arrange() {
    if (Math.abs(vis.clientWidth - arrangedFor) > 8) arrange();
  },
};

// Without a choice of the reader's, the head is enlarged that gives most to words.
function mostForWords() {
  const all = panel().attn,
    marks = panel().right_text.map(isMark),
    at = largest(all.flatMap((heads) => heads.map((weights) => shareOf(weights, marks))));
  return { layer: Math.floor(at / all[0].length), head: at % all[0].length };
}

// What the keyboard walks along: the weights of a row, the largest first.
function cellsOf(row) {
  return [...weightsOf()[row].entries()]
    .filter(([, weight]) => weight > 0)
    .sort(([, one], [, other]) => other - one)
    .map(([column]) => ({ row, column, text: describeWeight(row, column) }));
}

// Of all heads, in the order of layers and heads

const drawn = []; // { layer, head, weights, square, kind }
let arrangedFor = 0; // the width

function drawSquares() {
  const { left_text: left, right_text: right, attn } = panel(),
    marks = right.map(isMark),
    alike = left.length === right.length && left.every((token, at) => token === right[at]);
  vis.replaceChildren();
  const svg = add(vis, "svg");
  add(svg, "g", { class: "labels" });
  drawn.length = 0;
  attn.forEach((heads, layer) =>
    heads.forEach((weights, head) => {
      const square = add(svg, "g", { class: "square" });
      add(square, "rect", { class: "ground" });
      add(square, "image", { preserveAspectRatio: "none" });
      add(square, "text", { class: "name", "text-anchor": "middle" });
      const press = add(square, "rect", { class: "press", opacity: 0, role: "button", tabindex: -1 });
      press.addEventListener("click", () => enlarge(layer, head));
      drawn.push({ layer, head, weights, square, press, kind: kindOf(weights, marks, alike) });
    }),
  );
  paintSquares();
  sortSquares();
  drawn[0].press.tabIndex = 0;
}

function sortSquares(moving = false) {
  root.classList.toggle("kinds", byKind());
  vis.querySelector("svg").append(...inOrder().map(({ square }) => square)); // for the keyboard
  for (const { layer, head, press } of drawn) {
    set(press, { "aria-label": nameOfHead({ layer, head }) + describeKind(layer, head) });
  }
  arrange(moving);
}

// The finding: what most heads look at, of those whose attention is not spread out.
function title() {
  const counts = new Map();
  for (const { kind } of drawn) {
    const { name, column } = kind;
    if (name !== "spread") counts.set(placeOf(name, column), (counts.get(placeOf(name, column)) ?? 0) + 1);
  }
  const [[place, count]] = [...counts, ["", 0]].sort(([, one], [, other]) => other - one);
  return count
    ? `${count} of ${drawn.length} heads give ${place} more than half of their attention`
    : `None of ${drawn.length} heads gives more than half of its attention to one place`;
}

const isFixed = (name) => name === "word" || name === "mark";
const placeOf = (name, column) => (isFixed(name) ? panel().right_text[column] : KINDS[name].toLowerCase());

const inOrder = () => (byKind() ? Object.keys(KINDS).flatMap(headsOf) : drawn);
const headsOf = (name) =>
  drawn.filter(({ kind }) => kind.name === name).sort((one, other) => other.kind.share - one.kind.share);

// What a head is sorted by, in words and a number.
function describeKind(layer, head) {
  if (!byKind()) return "";
  const { name, instead, column, share } = drawn.find((each) => each.layer === layer && each.head === head).kind;
  const kind = instead ?? name,
    place = isFixed(kind) ? tokenName(panel().right_text, column) : placeOf(kind);
  return `: ${instead ? "at most " : ""}${format(share)} to ${place}`;
}

// Their colours

function scaleOfWeights() {
  const stops = stopsOf("above");
  return Array.from({ length: 256 }, (_, index) => blend(stops, index / 255));
}

// A picture with a pixel for each weight, or, with at most so many rows and columns, for the largest of neighbours.
function paintWeights(weights, scale, most = Infinity) {
  const step = Math.ceil(Math.max(weights.length, weights[0].length) / most) || 1;
  const [width, height] = [weights[0].length, weights.length].map((count) => Math.ceil(count / step));
  const strongest = new Float32Array(width * height);
  weights.forEach((row, from) =>
    row.forEach((weight, to) => {
      const at = Math.floor(from / step) * width + Math.floor(to / step);
      if (weight > strongest[at]) strongest[at] = weight;
    }),
  );
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const pen = canvas.getContext("2d"),
    image = pen.createImageData(width, height);
  strongest.forEach((weight, at) => image.data.set([...scale[Math.round(Math.min(1, weight) * 255)], 255], 4 * at));
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

function paintSquares() {
  const scale = scaleOfWeights();
  for (const { square, weights } of drawn)
    square.children[1].setAttribute("href", paintWeights(weights, scale, SHARPEST));
  ramp(legend, ["Attention weights: 0", 1], (share) => `rgb(${scale[Math.round(255 * share)]})`);
  if (enlarged()) arrange();
}

// Where they are

function arrange(moving = false) {
  const svg = vis.querySelector("svg"),
    labels = svg.querySelector(".labels");
  const sizes = { layers: data.include_layers.length, heads: data.include_heads.length },
    room = Math.max(vis.clientWidth - 8, 300);
  arrangedFor = vis.clientWidth;
  svg.querySelectorAll(".detail").forEach((old) => old.remove());
  const detail = drawDetail(svg),
    place = placeHeads(sizes, detail, room, !byKind()),
    { pitch } = place,
    width = byKind() ? room : AXIS + sizes.heads * pitch;
  for (const { layer, head, square, press } of drawn) {
    const isOpen = layer === state.layer && head === state.head;
    square.classList.toggle("open", isOpen);
    set(press, { "aria-expanded": isOpen });
  }
  labels.replaceChildren();
  const low = byKind() ? placeByKind(labels, Math.max(pitch, 40), width, moving) : placeByLayer(labels, pitch, moving);
  const end = enlarged() ? putDetail(detail, place, low) : [0, 0];
  if (!enlarged()) detail.all.remove();
  const [wide, high] = [Math.max(width, end[0], place.isBeside ? place.x + place.width + 1 : 0), Math.max(low, end[1])];
  set(svg, { width: wide, height: high, viewBox: `0 0 ${wide} ${high}` });
}

function putSquare(each, x, y, pitch, named, moving) {
  const [ground, image, name, press] = each.square.children,
    gap = pitch > 40 ? 6 : 3,
    side = pitch - gap;
  set(each.square, { transform: `translate(${x} ${y})` });
  set(ground, { x: gap / 2 - 0.5, y: gap / 2 - 0.5, width: side + 1, height: side + 1 });
  set(image, { x: gap / 2, y: gap / 2, width: side, height: side });
  set(name, { x: pitch / 2, y: pitch + 10, "font-size": 13 });
  name.textContent = named ? `${data.include_layers[each.layer]}-${data.include_heads[each.head]}` : "";
  set(press, { width: pitch, height: pitch + (named ? 14 : 0) });
  const [from, to] = [each.at, [x, y]].map((at) => at && { transform: `translate(${at[0]}px, ${at[1]}px)` });
  if (moving && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
    each.square.animate([from, to], { duration: 500, easing: "ease-in-out" });
  }
  each.at = [x, y];
}

function placeByLayer(labels, pitch, moving) {
  const layers = data.include_layers,
    heads = data.include_heads,
    low = AXIS + layers.length * pitch;
  const write = (text, place, anchor = "middle") =>
    add(labels, "text", { ...place, "font-size": 13, "text-anchor": anchor }, text);
  const along = (index) => AXIS + (index + 0.5) * pitch;
  write("Heads", { class: "name", x: along(heads.length / 2 - 0.5), y: 15 });
  write("Layers", { class: "name", transform: `translate(13 ${along(layers.length / 2 - 0.5)}) rotate(-90)` });
  heads.forEach((head, at) => write(head, { x: along(at), y: 33 }));
  layers.forEach((layer, at) => write(layer, { x: AXIS - 5, y: along(at) + 5 }, "end"));
  for (const each of drawn) putSquare(each, AXIS + each.head * pitch, AXIS + each.layer * pitch, pitch, false, moving);
  return low;
}

// The kinds follow each other like words, each with a title above its heads.
function placeByKind(labels, pitch, width, moving) {
  const across = Math.floor(width / pitch),
    high = pitch + 18;
  let x = 0,
    y = 0,
    low = 0;
  for (const name of Object.keys(KINDS).filter((name) => headsOf(name).length)) {
    const heads = headsOf(name),
      title = `${titleOf(name, heads)}: ${heads.length} head${heads.length === 1 ? "" : "s"}`;
    const label = add(labels, "text", { "font-weight": "bold", "font-size": 14 }, title);
    const needed = Math.max(label.getComputedTextLength(), Math.min(heads.length, across) * pitch);
    if (x + needed > width) [x, y] = [0, low];
    set(label, { x: x + 2, y: y + 18 });
    heads.forEach((each, index) =>
      putSquare(each, x + (index % across) * pitch, y + 26 + Math.floor(index / across) * high, pitch, true, moving),
    );
    low = Math.max(low, y + 32 + Math.ceil(heads.length / across) * high);
    x += needed + 28;
  }
  return low;
}

// With the tokens that the heads look at.
function titleOf(name, heads) {
  const tokens = isFixed(name) ? heads.map(({ kind }) => panel().right_text[kind.column]) : [];
  const different = [...new Set(tokens)],
    some = different.slice(0, 3).join(" ") + (different.length > 3 ? " …" : "");
  return KINDS[name] + (some && ` (${some})`);
}

// The square that is next in this direction, for the keyboard.
function squareTowards(press, right, down) {
  const all = inOrder(),
    now = all.findIndex((one) => one.press === press),
    [x, y] = all[now].at;
  if (right) return all[now + right]?.press;
  const far = ({ at: [left, top] }) => Math.abs(top - y) * 4 + Math.abs(left - x);
  return all.filter(({ at }) => (at[1] - y) * down > 4).sort((one, other) => far(one) - far(other))[0]?.press;
}

// The enlarged head: its words on both sides, and the numbers under the pointer

function enlarge(layer, head) {
  const closes = state.layer === layer && state.head === head;
  Object.assign(state, closes ? { layer: null, head: null } : { layer, head });
  say(closes ? REST : "Point at a cell, or at a token on the left.", true);
  showTip(null); // after a tap it would stay, over the squares
  arrange();
  if (!closes) outOfSight.observe(document.querySelector("rect.detail"));
}

// The page stays where the reader has scrolled it, unless less than a quarter of the enlarged head would be seen.
const outOfSight = new IntersectionObserver(([{ target, intersectionRatio }]) => {
  outOfSight.disconnect();
  if (intersectionRatio < 0.25) target.scrollIntoView({ block: "nearest" });
});

// Its words are drawn first: the room that they need decides where everything is.
function drawDetail(svg) {
  const { left_text: left, right_text: top } = panel(),
    all = add(svg, "g", { class: "detail" }),
    bold = { "font-weight": "bold", "font-size": 13 };
  const frame = add(all, "rect", { class: "detail", rx: 4 }),
    title = add(all, "text", { class: "detail", ...bold }, enlarged() ? capital(nameOfHead(state)) : "");
  const rows = drawWords(all, left, true),
    map = add(all, "g", { class: "detail" }),
    columns = drawWords(all, top),
    asks = add(map, "text", { "font-size": 13, "text-anchor": "end", class: "asks" }, "looks at →");
  const longest = (words) => Math.max(...words.map(({ text }) => text.getComputedTextLength())) + 12;
  const beside = Math.max(longest(rows), asks.getComputedTextLength() + 12);
  return { all, frame, title, rows, map, columns: top.length, words: columns, asks, beside, above: longest(columns) };
}

// Put the enlarged head in its place, and return its lower right corner.
function putDetail({ frame, title, rows, map, words, asks, beside, above }, place, low) {
  const { cell, width, x } = place,
    y = place.isBeside ? 8 : low + 12,
    height = 40 + above + rows.length * cell,
    start = { x: x + beside, y: y + 30 + above };
  set(frame, { x, y, width, height });
  set(title, { x: x + 12, y: y + 20 });
  set(asks, { x: start.x - 6, y: start.y - 6 });
  rows.forEach(({ ground, text }, row) => {
    set(ground, { x: x + 4, y: start.y + row * cell, width: beside - 4, height: cell });
    set(text, { x: start.x - 6, y: start.y + (row + 0.5) * cell + 4.5, "text-anchor": "end" });
  });
  words.forEach(({ ground, text }, column) => {
    set(ground, { x: start.x + column * cell, y: y + 30, width: cell, height: above });
    set(text, { transform: `translate(${start.x + (column + 0.5) * cell + 4.5} ${start.y - 6}) rotate(-90)` });
  });
  drawCells(map, weightsOf(), start, cell, rows, words);
  return [x + width + 1, y + height + 1];
}

function drawWords(svg, tokens, canWalk = false) {
  const group = add(svg, "g", { class: "detail" });
  return tokens.map((token, at) => {
    const word = add(group, "g"),
      ground = add(word, "rect", { class: "highlight" });
    if (canWalk) set(word, { role: "button", tabindex: at ? -1 : 0, "aria-label": `${token}, position ${at}` });
    if (canWalk) word.addEventListener("keydown", (event) => walk(event, word));
    return { word, ground, text: add(word, "text", { class: "token", "font-size": 13 }, token) };
  });
}

let markCell = (_row, _column) => {}; // of the enlarged head: a row, a column, or one weight

function drawCells(map, weights, { x, y }, cell, rows, columns) {
  const width = columns.length * cell,
    height = rows.length * cell,
    place = { x, y, width, height };
  add(map, "image", { ...place, preserveAspectRatio: "none", href: paintWeights(weights, scaleOfWeights()) });
  const lines = [...rows.keys()]
    .slice(1)
    .map((row) => `M${x} ${y + row * cell}h${width}`)
    .concat([...columns.keys()].slice(1).map((column) => `M${x + column * cell} ${y}v${height}`));
  add(map, "path", { class: "grid", d: lines.join("") });
  weights.forEach((numbers, row) =>
    numbers.forEach((weight, column) => {
      if (cell < WRITTEN.cell || weight < WRITTEN.from) return;
      const middle = { x: x + (column + 0.5) * cell, y: y + (row + 0.5) * cell + 4 },
        kind = weight > 0.68 ? "weight strong" : "weight";
      add(map, "text", { ...middle, class: kind }, format(weight).replace(/^0|\.00$/g, ""));
    }),
  );
  add(map, "rect", { ...place, class: "edge" });
  const shade = add(map, "path", { class: "shade", "fill-rule": "evenodd" }),
    mark = add(map, "rect", { class: "at" });
  const cells = add(map, "rect", { ...place, class: "cells" });
  markCell = (row, column) => {
    const [left, across] = column === undefined ? [x, width] : [x + column * cell, cell];
    const [top, down] = row === undefined ? [y, height] : [y + row * cell, cell],
      any = row !== undefined || column !== undefined;
    rows.forEach(({ ground }, at) => ground.classList.toggle("shown", at === row));
    columns.forEach(({ ground }, at) => ground.classList.toggle("shown", at === column));
    const one = row !== undefined && column !== undefined;
    shade.setAttribute(
      "d",
      any && !one ? `M${x} ${y}h${width}v${height}h${-width}zM${left} ${top}h${across}v${down}h${-across}z` : "",
    );
    set(mark, { x: left, y: top, width: across, height: down, visibility: any ? "visible" : "hidden" });
  };
  markCell();
  cells.addEventListener("mousemove", ({ clientX, clientY }) => {
    const { row, column } = cellAt(cells, clientX, clientY);
    markCell(row, column);
  });
  const markRow = (row) => {
    markCell(row);
    say(
      cellsOf(row)
        .slice(0, 3)
        .map(({ text }, at) => (at ? text.replace(/^.*→ /, "") : text))
        .join(", "),
    );
  };
  for (const [words, marks] of [
    [rows, markRow],
    [columns, (at) => markCell(undefined, at)],
  ]) {
    words.forEach(({ word }, at) => word.addEventListener("mouseover", () => marks(at)));
  }
  for (const element of [cells, ...rows.map(({ word }) => word), ...columns.map(({ word }) => word)]) {
    element.addEventListener("mouseleave", () => markCell());
  }
}

function cellAt(cells, clientX, clientY) {
  const { left, top, width, height } = cells.getBoundingClientRect(),
    weights = weightsOf();
  const index = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
  return {
    row: index((clientY - top) / height, weights.length),
    column: index((clientX - left) / width, weights[0].length),
  };
}

// The keyboard: in the squares, and along the tokens and the weights of the enlarged head.
let walked = -1; // the place of the weight that was reached

vis.addEventListener("keydown", (event) => {
  const [right, down] = ARROWS[event.key] ?? [0, 0],
    { target } = event;
  if (event.key === "Escape" && enlarged()) {
    const { press } = drawn.find(({ layer, head }) => layer === state.layer && head === state.head);
    enlarge(state.layer, state.head);
    press.focus();
  } else if (!target.matches(".press")) return;
  else if (/^(Enter| )$/.test(event.key)) target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  else if (right || down) squareTowards(target, right, down)?.focus();
  else return;
  event.preventDefault(); // the keyboard stays in the picture
});
vis.addEventListener("focusin", ({ target }) => {
  for (const one of vis.querySelectorAll(target.matches(".press") ? ".press" : "[role]:not(.press)"))
    one.setAttribute("tabindex", -1);
  target.setAttribute("tabindex", 0);
  walked = -1;
  if (target.matches("g.detail > g")) target.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
});
vis.addEventListener("focusout", () => {
  if (walked >= 0) showTip(null);
});

function walk(event, word) {
  const [right, down] = ARROWS[event.key] ?? [0, 0],
    rows = [...word.parentNode.children],
    row = rows.indexOf(word);
  if (!right && !down) return;
  if (down) rows[row + down]?.focus();
  else {
    const cells = cellsOf(row),
      box = word.getBoundingClientRect();
    walked = clamp(walked + right, -1, cells.length - 1);
    markCell(row, cells[walked]?.column);
    showTip(cells[walked]?.text, box.right, box.bottom - 8);
  }
  event.preventDefault();
}

by("order").addEventListener("change", () => sortSquares(true));
start(view, data.code);
