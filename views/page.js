// Runs in the page of a view before bertviz draws: stands in for the two libraries that bertviz would fetch
// (require.js and jQuery), turns the packed data back into bertviz's, and thins out drawings of very many lines.

// bertviz asks for jQuery and d3 by name; both are here already, so it draws at once.
window.requirejs = (names, draw) => draw(...names.map((name) => ({ d3: window.d3, jquery: jQuery })[name]));

// The eight jQuery methods that bertviz calls, on a list of elements. Text is set as text, never as HTML.
class Elements {
  constructor(list) { this.list = list; }
  each(action) { this.list.forEach(action); return this; }
  append(children) { return this.each((element) => element.append(...children.list)); }
  empty() { return this.each((element) => element.replaceChildren()); }
  text(text) { return this.each((element) => { element.textContent = text; }); }
  val(value) { return this.each((element) => { element.value = value; }); }
  attr(name, value) { return this.each((element) => element.setAttribute(name, value)); }
  on(type, handler) { return this.each((element) => element.addEventListener(type, handler)); }
  change() { return this.each((element) => element.dispatchEvent(new Event("change"))); }
}

function jQuery(selector) {
  const newElement = /^<(\w+) \/>$/.exec(selector);
  return new Elements(newElement ? [document.createElement(newElement[1])] : [...document.querySelectorAll(selector)]);
}

// Numbers travel as whole ten-thousandths; the names of a pair's parts are those of bertviz's drop-down.
const unpackNumbers = (packed) => (Array.isArray(packed) ? packed.map(unpackNumbers) : packed / 10000);

function unpackPanel(panel) {
  for (const name of ["attn", "queries", "keys"]) {
    if (panel[name]) panel[name] = unpackNumbers(panel[name]);
  }
  return panel;
}

// The part of a pair's attention from the tokens [start, end) of `rows` to those of `columns`.
function cutPanel(all, rows, columns) {
  const eachHead = (layers, cut) => layers && layers.map((heads) => heads.map(cut));
  return {
    left_text: all.left_text.slice(...rows),
    right_text: all.right_text.slice(...columns),
    attn: eachHead(all.attn, (weights) => weights.slice(...rows).map((row) => row.slice(...columns))),
    queries: eachHead(all.queries, (vectors) => vectors.slice(...rows)),
    keys: eachHead(all.keys, (vectors) => vectors.slice(...columns)),
  };
}

// A panel of whole words in place of their pieces; a query and a key belong to a piece, so the neuron view has none.
function mergeWords(panel) {
  const { left, right, ...texts } = panel.words;
  return { ...panel, ...texts, attn: panel.attn.map((heads) => heads.map((rows) => wholeWords(rows, left, right))) };
}

function unpack(params) {
  const panels = params.attention;
  Object.values(panels).forEach(unpackPanel);
  if (params.whole) {
    const words = Object.values(panels)[0].words?.left ?? [];
    for (const name of ["sentence_b_start", "token"]) params[name] = words[params[name]] ?? params[name];
    for (const name of Object.keys(panels)) if (panels[name].words) panels[name] = mergeWords(panels[name]);
  }
  if (params.sentence_b_start !== null) {
    const a = [0, params.sentence_b_start];
    const b = [params.sentence_b_start];
    const parts = { aa: [a, a], bb: [b, b], ab: [a, b], ba: [b, a] };
    for (const [name, [rows, columns]] of Object.entries(parts)) panels[name] = cutPanel(panels.all, rows, columns);
  }
  return params;
}

// bertviz's templates name their data in two ways: PYTHON_PARAMS (head and model view), bertviz_params (neuron view).
window.PYTHON_PARAMS = window.bertviz_params = unpack(JSON.parse(document.getElementById("data").textContent));

// Very many lines, more than a browser draws at once: those of less than VISIBLE opacity are left out, which nobody can
// see, and the model view's thumbnails are painted on one canvas (canvas.js). Of a small view every line is drawn.
const KIND = document.documentElement.classList.item(1); // such as "head_view"
const VISIBLE = KIND === "neuron_view" ? 0.02 : 0.004; // its lines lie side by side, theirs upon each other
const MANY = linesAtOnce(window.bertviz_params) > 20000;

function linesAtOnce(params) {
  const { attn } = params.attention[params.default_filter];
  const lines = attn[0][0].length * attn[0][0][0].length;
  return lines * { head_view: attn[0].length, model_view: attn.length * attn[0].length, neuron_view: 7 }[KIND];
}

// The weights of a row that can be seen, each with its place in the row, where `heads` share the opacity.
function visible(row, heads = 1) {
  if (!MANY) return row;
  return row.map((weight, index) => Object.assign(new Number(weight), { index }))
    .filter((weight) => weight / heads >= VISIBLE);
}

function placeOf(weight, index) { return weight.index ?? index; }

// A colour of utils/support/colours.py, as the page's theme has it now.
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

// All heads share one blue. A few that are chosen in the head view have a hue each, of twelve; after the last of them the
// hues repeat, with dashes.
const FEW = 6;
const headColours = () => colour("heads").split(" ");
const dashes = (head) => ["none", "7 3", "2 3"][Math.floor(head / headColours().length)] ?? "1 4";

function headColour(head, shown) {
  return shown > 1 && shown <= FEW ? headColours()[head % headColours().length] : colour("key");
}

// On a dark ground, lines are as light as the colour of a weight of 1: one of weight 0.41 then has a contrast of 3.
function lineColour(hue = colour("key")) {
  if (!root.classList.contains("dark")) return hue;
  const strongest = colour("scale-above").split(" ").at(-1);
  if (hue === colour("key")) return strongest;
  const light = window.d3.hcl(hue);
  light.l = Math.max(light.l, window.d3.hcl(strongest).l);
  while (!light.displayable()) light.c -= 1;
  return light.toString();
}

// Of the neuron view: numbers by their sign, attention weights from white to blue; undefined for what is neither.
function neuronColour(name) {
  const table = { attn: "above", connector: "above", pos: "above", neg: "below", text_highlight_right: "weight" }[name];
  return table && colour(table);
}

// Among how many heads a head's opacity is shared in the head view; a hidden one shows nothing.
function shownHeads(config, group) {
  return config.headVis[+group.getAttribute("head-index")] ? config.headVis.filter(Boolean).length : Infinity;
}

function setAttributes(element, values) {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
}

// Below which weight a reader hides the lines.
function threshold() { return +document.getElementById("threshold").value; }

// Numbers beside or in the squares that show them as colours, in the neuron view.
function printNumbers(group, squares, numbers, digits, right, down) {
  group.querySelectorAll(":scope > text").forEach((text) => text.remove());
  squares.forEach((square, row) => {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    const x = +square.getAttribute("x") + right, y = +square.getAttribute("y") + down;
    setAttributes(text, { x, y, "font-size": 13 });
    text.textContent = numbers[row].toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "\u2212");
    group.append(text);
  });
}

function printSums(group, sums) {
  if (group) printNumbers(group, group.querySelectorAll("rect"), sums, 1, 27, 15); // opened
}

function printWeights(weights) {
  const expanded = document.getElementById("expanded");
  if (!expanded) return; // not opened yet
  const group = document.getElementById("weights") ?? document.createElementNS("http://www.w3.org/2000/svg", "g");
  setAttributes(group, { id: "weights", "pointer-events": "none" });
  expanded.append(group);
  printNumbers(group, expanded.querySelectorAll("#rightText .highlight"), weights, 2, 6, 16);
  document.querySelectorAll("#dotproducts > text").forEach((sum, row) => {
    if (Object.is(weights[row], -0)) sum.textContent = "masked"; // which has no part in the softmax
  });
}

if (MANY) document.getElementById("help").append(` Lines of less than ${100 * VISIBLE} % opacity are left out.`);
