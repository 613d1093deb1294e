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

function unpack(params) {
  const panels = params.attention;
  Object.values(panels).forEach(unpackPanel);
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

// Very many lines: those of less than VISIBLE opacity are left out, which nobody can see, and the model view's
// thumbnails are painted on one canvas. Of a small view every line is drawn.
const KIND = document.documentElement.classList.item(1); // such as "head_view"
const VISIBLE = KIND === "neuron_view" ? 0.02 : 0.004; // its lines lie side by side, theirs upon each other
const MOST_LINES = 20000;
const MANY = linesAtOnce(window.bertviz_params) > MOST_LINES;

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

// bertviz has ten colours; the heads after them are dashed in the head view.
function dashes(head) { return ["none", "7 3", "2 3"][Math.floor(head / 10)] ?? "1 4"; }

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
    text.textContent = numbers[row].toFixed(digits).replace("-", "\u2212");
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
}

// Paint a thumbnail's lines on the canvas over the drawing, if there are many; whether that was done.
function painted(svg, weights, place) {
  if (!MANY) return false;
  const sheet = svg.querySelector("foreignObject") ?? addSheet(svg);
  svg.append(sheet); // over the backgrounds of all thumbnails so far
  sheet.thumbnails.push([weights, place]);
  paint(sheet, weights, place);
  return true;
}

// All lines of a thumbnail have one colour, so what shows of the ground behind them is a product, in any order. It is
// worked out here: a canvas that draws them one by one takes three times as long.
function paint(sheet, weights, { x1, x2, y1, box, color }) {
  const pen = sheet.firstChild.getContext("2d"), scale = pen.getTransform().a, lowest = Math.max(VISIBLE, threshold());
  const [left, right, top] = [x1, x2, y1].map((length) => Math.round(length * scale)), step = box * scale;
  const width = right - left, height = Math.ceil(step * Math.max(weights.length, weights[0].length));
  const ground = new Float32Array(width * height).fill(1);
  weights.forEach((row, source) => row.forEach((weight, target) => {
    if (weight < lowest) return;
    const slope = ((target - source) * step) / width, edge = Math.max(1, Math.abs(slope));
    const reach = 1.1 * scale * Math.hypot(1, slope) + edge / 2;
    for (let x = 0, y = (source + 0.5) * step + slope / 2 - 0.5; x < width; x++, y += slope) {
      const from = Math.max(0, Math.ceil(y - reach)), to = Math.min(height - 1, Math.floor(y + reach));
      for (let at = from; at <= to; at++) {
        ground[at * width + x] *= 1 - weight * Math.min(1, (reach - Math.abs(at - y)) / edge);
      }
    }
  }));
  pen.fillStyle = color; // which makes it #rrggbb
  const ink = [1, 3, 5].map((at) => parseInt(pen.fillStyle.slice(at, at + 2), 16)), behind = groundColor();
  const image = pen.createImageData(width, height), { data } = image;
  for (let pixel = 0, at = 0; pixel < ground.length; pixel++) {
    for (const value of ink) data[at++] = value + (behind - value) * ground[pixel];
    data[at++] = 255;
  }
  pen.putImageData(image, left, top);
}

function repaint(sheet) {
  clear(sheet);
  for (const [weights, place] of sheet.thumbnails) paint(sheet, weights, place);
}

// Of red, green and blue alike.
function groundColor() { return document.documentElement.classList.contains("dark") ? 0 : 255; }

function clear(sheet) {
  const pen = sheet.firstChild.getContext("2d", { alpha: false }); // on its own ground, as faint colours need it
  sheet.style.mixBlendMode = groundColor() ? "multiply" : "screen"; // the ground of a chosen thumbnail shines through
  pen.fillStyle = groundColor() ? "white" : "black";
  pen.fillRect(0, 0, +sheet.getAttribute("width"), +sheet.getAttribute("height"));
}

function addSheet(svg) {
  const [width, height] = ["width", "height"].map((name) => +svg.getAttribute(name));
  const scale = Math.min(window.devicePixelRatio, 16000 / height, Math.sqrt(6e7 / (width * height)));
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: width * scale, height: height * scale });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, display: "block" });
  setAttributes(sheet, { width, height, "pointer-events": "none" });
  sheet.append(canvas);
  sheet.thumbnails = []; // what is painted on it
  canvas.getContext("2d", { alpha: false }).scale(scale, scale);
  clear(sheet);
  return sheet;
}

if (MANY) document.getElementById("help").append(` Lines of less than ${100 * VISIBLE} % opacity are left out.`);
