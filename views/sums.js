// A neuron view: draws each score as the sum of its products, a row for each key.

import { root } from "./frame.js";
import { clamp, format, largest, quoted, sum, tokenName } from "./numbers.js";
import { add, by, fitText, set } from "./elements.js";
import { data, glide, say } from "./draggable/figure.js";
import { panel, start, tools, vis } from "./reader.js";

const ROW = 34,
  TOP = 56; // pixels of a row, and above the first
const WIDEST = 860;
const MOST_MOVED = 4000; // products that are drawn anew in each frame of a move
const state = { query: -1, key: 0, neuron: 0 };
const [layerChoice, headChoice] = ["layer", "att_head"].map(by);
const layer = () => +layerChoice.value,
  head = () => +headChoice.value;

const view = {
  drawn: () => panel().attn[layer()][head()],
  first: () => ({ layer: layer(), head: head() }),
  words() {
    const most = largest(view.drawn()[state.query]),
      [asks, gets] = [tokenName(panel().left_text, state.query), tokenName(panel().right_text, most)].map(quoted);
    const numbers = [format(sum(productsOf(state.query)[most]), 1), format(view.drawn()[state.query][most])];
    const score = `has the highest score, ${numbers.join(", and gets ")}`;
    return { title: `Layer ${layer()}, head ${head()}: for ${asks}, ${gets} ${score}` };
  },
  state: () => [`layer ${layer()}, head ${head()}`, by("say").textContent],
  keeps: () => ({ heads: [[layer(), head()]], pinned: { i: state.query, from: true } }),
  begin({ heads: [first] = [], pinned }) {
    const sizes = [panel().attn.length, panel().attn[0].length];
    for (const [at, select] of [layerChoice, headChoice].entries()) {
      for (let number = 0; number < sizes[at]; number++) add(select, "option", {}, number);
      select.value = first?.[at] < sizes[at] ? first[at] : [data.layer, data.head][at];
      select.addEventListener("change", drawSums);
    }
    state.query = pinned?.i ?? data.token ?? -1;
  },
  draw: drawSums,
  arrange() {
    if (Math.abs(vis.clientWidth - laidOutFor) > 8) drawSums();
  },
  forget() {
    state.query = -1;
  },
};

// Products and weights of one query

let laidOutFor = 0; // the width
let shown = null; // { products, weights } that are drawn, row by row, and the order of each row's products

function productsOf(query) {
  const { queries, keys } = panel(),
    q = queries[layer()][head()][query],
    size = Math.sqrt(q.length);
  return keys[layer()][head()].map((key) => key.map((number, n) => (number * q[n]) / size));
}

// Begin with what the head does most: the largest weight between two different tokens, not to the first.
function findQuery() {
  let best = -1;
  view.drawn().forEach((weights, row) =>
    weights.forEach((weight, column) => {
      if (column !== row && column > 0 && weight > best) [best, state.query] = [weight, row];
    }),
  );
  state.query = Math.max(0, state.query);
}

function drawSums() {
  if (!(state.query in panel().left_text)) findQuery();
  const { queries } = panel(),
    D = queries[0][0][0].length,
    weights = view.drawn()[state.query],
    products = productsOf(state.query);
  const names = panel().left_text,
    select = by("query");
  select.replaceChildren();
  names.forEach((name, at) => {
    add(select, "option", { value: at }, tokenName(names, at)).selected = at === state.query;
  });
  const others = weights.map((weight, at) => (at === 0 && weights.length > 1 ? -1 : weight));
  if (shown?.query !== state.query || shown.of !== view.drawn()) {
    state.key = largest(others);
    state.neuron = largest(products[state.key]);
  }
  laidOutFor = vis.clientWidth;
  const put = (numbers) => {
    shown = { query: state.query, of: view.drawn(), weights: numbers.slice(-weights.length) };
    shown.products = products.map((_, row) => numbers.slice(row * D, (row + 1) * D));
    paintSums();
  };
  const goal = [...products.flat(), ...weights];
  if (goal.length > MOST_MOVED) put(goal);
  else glide(vis, goal, put);
}

// Where everything is, from the left: the key, its number of the marked neuron, the blocks, and the weight.
function layout() {
  const zoom = root.classList.contains("on-slide") ? 1.35 : 1; // for the back row
  const width = Math.max(320, Math.min(WIDEST, (vis.clientWidth - 2) / zoom)),
    narrow = width < 500;
  const name = narrow ? 76 : 120,
    numbers = name + (narrow ? 46 : 60),
    weight = width - (narrow ? 46 : 96);
  const exp = weight - 14, // e^score, which a narrow page leaves out
    score = narrow ? weight - 6 : exp - 72;
  const blocks = numbers + (narrow ? 36 : 40);
  return { zoom, width, narrow, name, numbers, blocks, end: score - 42, score, exp, weight };
}

function paintSums() {
  const place = layout(),
    { products, weights } = shown,
    right = panel().right_text,
    row = (at) => TOP + ROW * at;
  const { queries, keys } = panel(),
    marked = (vectors, at) => vectors[layer()][head()][at][state.neuron];
  let svg = vis.querySelector(".sums");
  if (!svg) {
    vis.replaceChildren();
    svg = add(vis, "svg", { class: "sums", tabindex: 0, role: "group" });
    for (const type of ["pointermove", "pointerdown"]) svg.addEventListener(type, pointAt);
    svg.addEventListener("click", ({ target }) => {
      if (target.matches(".key")) choose(+target.dataset.key);
    });
    svg.addEventListener("keydown", moveMark);
  }
  svg.replaceChildren();
  const total = place.narrow || place.zoom > 1 ? 0 : totalOf(products, weights), // no row for it there
    high = TOP + ROW * (right.length + (total > 0)) + 4;
  set(svg, {
    width: place.width * place.zoom,
    height: high * place.zoom,
    viewBox: `0 0 ${place.width} ${high}`,
    "aria-label": `the scores of the keys for ${panel().left_text[state.query]}`,
  });
  const text = (x, y, words, more = {}) => add(svg, "text", { x, y, "font-size": 13, ...more }, words);
  const end = { "text-anchor": "end" },
    rootD = `√${products[0].length}`;
  text(place.numbers, 14, place.narrow ? `no. ${state.neuron}` : `neuron ${state.neuron}`, { ...end, class: "soft" });
  text(place.numbers + 14, 14, place.narrow ? `products ÷ ${rootD}` : `products q × k ÷ ${rootD} add up to the score`, {
    class: "soft",
  });
  text(place.width, 14, "weight", { ...end, class: "soft" });
  text(place.score, place.narrow ? 38 : 14, "score", { ...end, class: "soft" });
  if (!place.narrow) text(place.exp, 14, "e^score", { ...end, class: "soft" });
  fitText(
    text(place.name, 38, panel().left_text[state.query], { ...end, class: "query", "font-size": 14 }),
    place.name,
  );
  text(place.numbers, 38, format(marked(queries, state.query)), { ...end, class: "query" });
  text(place.numbers + 14, 38, place.narrow ? "query" : "the query, to be multiplied by each key", {
    class: "query",
  });
  const sums = products.map((all) => [sum(all.filter((x) => x > 0)), sum(all)]);
  const most = Math.max(...sums.map(([up]) => up), 0.1),
    least = Math.min(0, ...sums.map(([, score]) => score));
  const scale = (place.end - place.blocks) / (most - least),
    x = (number) => place.blocks + (number - least) * scale;
  add(svg, "path", { class: "zero", d: `M${x(0)} ${TOP - 6}V${row(right.length)}` });
  if (total) {
    const y = row(right.length) + 21;
    text(place.exp, y, `sum ${brief(total)}`, { ...end, class: "soft" });
    text(place.width, y, format(1), { ...end, class: "soft" });
  }
  shown.blocks = products.map((all, key) => {
    const y = row(key),
      score = sums[key][1],
      masked = Object.is(weights[key], -0),
      chosen = key === state.key;
    const word = text(place.name, y + 21, right[key], {
      ...end,
      class: `key${chosen ? " at" : ""}`,
      "font-size": 14,
      "data-key": key,
    });
    fitText(word, place.name);
    text(place.numbers, y + 21, format(marked(keys, key)), { ...end, class: "number" });
    let at = 0;
    const blocks = all
      .map((product, neuron) => ({ product, neuron }))
      .sort((one, other) => other.product - one.product)
      .map((block) => {
        const [from, to] = [at, at + block.product].sort((one, other) => one - other),
          isUp = block.product > 0;
        at += block.product;
        const box = {
          x: x(from),
          width: Math.max(0.3, (to - from) * scale - 0.5),
          y: isUp ? y + 2 : y + 17,
          height: 14,
        };
        const kind = `block ${isUp ? "up" : "down"}${block.neuron === state.neuron ? " marked" : ""}`;
        add(svg, "rect", { ...box, class: kind, "data-value": block.product, "data-neuron": block.neuron });
        const number = format(block.product),
          middle = box.x + box.width / 2,
          half = 3.8 * number.length;
        const stops = [x(score) - 2, x(score) + 2]; // the tick
        if (box.width > 2 * half + 2 && (middle + half < stops[0] || middle - half > stops[1])) {
          const more = { class: "product", "text-anchor": "middle", "font-size": 12 };
          add(svg, "text", { x: middle, y: box.y + 11.5, ...more }, number);
        }
        return { ...block, ...box };
      });
    add(svg, "path", { class: "tick", d: `M${x(score)} ${y}v32` });
    text(place.score, y + 21, masked ? "masked" : format(score, 1), { ...end, class: "score", "data-value": score });
    if (!place.narrow) text(place.exp, y + 21, masked ? "" : brief(Math.exp(score)), { ...end, class: "soft" });
    add(svg, "rect", {
      class: "bar",
      x: place.weight,
      y: y + (place.narrow ? 26 : 8), // under the number, or beside it
      height: place.narrow ? 4 : 16,
      width: weights[key] * (place.width - place.weight - (place.narrow ? 0 : 38)),
    });
    text(place.width, y + 21, format(weights[key]), {
      ...end,
      class: `weight${chosen ? " at" : ""}`,
      "data-value": weights[key],
    });
    return blocks;
  });
  sayProduct();
}

// What softmax divides by, if all keys are shown: the sum of e^score of those that are not masked; 0 otherwise.
function totalOf(products, weights) {
  if (Math.abs(sum(weights) - 1) > 0.01) return 0;
  return sum(products.map((all, key) => (Object.is(weights[key], -0) ? 0 : Math.exp(sum(all)))));
}
const brief = (number) =>
  number < 1e5 ? format(number, number < 55 ? 1 : 0) : number.toPrecision(2).replace("e+", "e");

// The product of the marked neuron, and what all of them add up to.
function sayProduct() {
  const { left_text: left, right_text: right, queries, keys } = panel(),
    { query, key, neuron } = state;
  const [q, k] = [
    [queries, query],
    [keys, key],
  ].map(([vectors, at]) => vectors[layer()][head()][at]);
  const products = q.map((number, n) => (number * k[n]) / Math.sqrt(q.length)),
    score = sum(products);
  const [up, down] = [products.filter((x) => x > 0), products.filter((x) => x < 0)],
    weight = view.drawn()[query][key],
    total = totalOf(productsOf(query), view.drawn()[query]);
  const softmax = total ? `e to this power is ${brief(Math.exp(score))} of ${brief(total)} in all, so` : "";
  const result = Object.is(weight, -0)
    ? "This token is masked, so its weight is 0."
    : `What is left, ${format(score)}, is the score; ${softmax} ${format(weight)} is the weight.`;
  say(
    `Neuron ${neuron}: query of “${tokenName(left, query)}” ${format(q[neuron])} × key of “${tokenName(right, key)}” ` +
      `${format(k[neuron])} ÷ √${q.length} = ` +
      `${format(products[neuron])}. ${up.length} of ${q.length} products push up, by ${format(sum(up), 1)}; ` +
      `${down.length} pull back, by ${format(-sum(down), 1)}. ${result}`,
  );
}

function mark(chosen) {
  Object.assign(state, chosen);
  paintSums();
}

function choose(query) {
  state.query = query;
  drawSums();
}

function pointAt({ clientX, clientY }) {
  const svg = vis.querySelector(".sums"),
    box = svg.getBoundingClientRect(),
    times = box.width / svg.viewBox.baseVal.width;
  const [left, top] = [(clientX - box.x) / times, (clientY - box.y) / times],
    key = Math.floor((top - TOP) / ROW);
  if (!shown.blocks[key]) return;
  const isUp = (top - TOP) % ROW < 16.5,
    away = ({ x, width }) => Math.max(x - left, left - x - width, 0);
  const near = shown.blocks[key]
    .filter(({ product }) => product > 0 === isUp)
    .sort((one, other) => away(one) - away(other))[0];
  const neuron = near && away(near) < 8 ? near.neuron : state.neuron;
  if (key !== state.key || neuron !== state.neuron) mark({ key, neuron });
}

// The arrow keys: up and down to another key, left and right along its products; Enter makes it the query.
function moveMark(event) {
  const { key: pressed } = event,
    down = { ArrowDown: 1, ArrowUp: -1 }[pressed],
    on = { ArrowRight: 1, ArrowLeft: -1 }[pressed];
  const row = shown.blocks[state.key];
  if (down) mark({ key: clamp(state.key + down, 0, shown.blocks.length - 1) });
  else if (on)
    mark({ neuron: row[clamp(row.findIndex(({ neuron }) => neuron === state.neuron) + on, 0, row.length - 1)].neuron });
  else if (pressed === "Enter" && state.key in panel().left_text) choose(state.key);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

const queryChoice = add(add(tools, "label", {}, "Query of: "), "select", { id: "query" });
queryChoice.addEventListener("change", () => choose(+queryChoice.value));
view.more = add(tools, "details");
add(view.more, "summary", {}, "more");
view.more.append(...[...tools.children].filter((label) => label.querySelector("#filter")));
start(view, data.code);
