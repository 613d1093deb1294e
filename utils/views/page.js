// Runs in the page of a view before bertviz draws: stands in for the two libraries that bertviz would fetch
// (require.js and jQuery), turns the packed data back into bertviz's, and fits page and frame to the drawing.

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
// thumbnails are painted on one canvas. A small view is drawn as bertviz draws it.
const KIND = document.documentElement.classList.item(1); // such as "head_view"
const VISIBLE = KIND === "neuron_view" ? 0.02 : 0.004; // its lines lie side by side, theirs upon each other
const MOST_LINES = 20000;
const DARK = document.documentElement.classList.contains("dark");
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

// Among how many heads a head's opacity is shared in the head view; a hidden one shows nothing.
function shownHeads(config, group) {
  return config.headVis[+group.getAttribute("head-index")] ? config.headVis.filter(Boolean).length : Infinity;
}

// Paint a thumbnail's lines on the canvas over the drawing, if there are many; whether that was done.
function painted(svg, weights, { x1, x2, y1, box, color }) {
  if (!MANY) return false;
  const sheet = svg.querySelector("foreignObject") ?? addSheet(svg);
  svg.append(sheet); // over the backgrounds of all thumbnails so far
  const pen = sheet.firstChild.getContext("2d");
  Object.assign(pen, { strokeStyle: color, lineWidth: 2.2 });
  weights.forEach((row, source) => row.forEach((weight, target) => {
    if (weight < VISIBLE) return;
    pen.globalAlpha = weight;
    pen.beginPath();
    pen.moveTo(x1, y1 + (source + 0.5) * box);
    pen.lineTo(x2, y1 + (target + 0.5) * box);
    pen.stroke();
  }));
  return true;
}

function addSheet(svg) {
  const [width, height] = ["width", "height"].map((name) => +svg.getAttribute(name));
  const scale = Math.min(window.devicePixelRatio, 16000 / height, Math.sqrt(6e7 / (width * height)));
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: width * scale, height: height * scale });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, display: "block" });
  sheet.style.mixBlendMode = DARK ? "screen" : "multiply"; // the ground of a chosen thumbnail shines through
  const pen = canvas.getContext("2d", { alpha: false }); // on its own ground, as faint colours need it
  pen.fillStyle = DARK ? "black" : "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.scale(scale, scale);
  for (const [name, value] of Object.entries({ width, height, "pointer-events": "none" })) sheet.setAttribute(name, value);
  sheet.append(canvas);
  return sheet;
}

if (MANY) document.getElementById("help").append(` Lines of less than ${100 * VISIBLE} % opacity are left out.`);

// What is under the pointer, in numbers. d3 keeps each element's datum.
const tip = Object.assign(document.createElement("div"), { id: "tip", role: "status", hidden: true });
document.body.append(tip);
const chosen = (id) => document.getElementById(id)?.value;
const upTo = (element, name) => element.closest(`[${name}]`)?.getAttribute(name);
const digits = (number) => Number(number).toFixed(2);

function describe(element) {
  const params = window.bertviz_params;
  const { left_text: left, right_text: right } = params.attention[chosen("filter") ?? params.default_filter];
  if (KIND === "head_view") {
    if (element.matches("#attention line")) {
      const [row, column] = ["left-token-index", "right-token-index"].map((name) => +element.getAttribute(name));
      const head = `layer ${chosen("layer")}, head ${upTo(element, "head-index")}`;
      return `${head}: ${left[row]} → ${right[column]} ${digits(element.__data__)}`;
    }
    const tiles = [...document.querySelectorAll("#vis > svg > g:last-child > rect")];
    if (tiles.includes(element)) return `head ${tiles.indexOf(element)}`;
  }
  if (KIND === "model_view") {
    const [, layer, head] = /_(\d+)_(\d+)$/.exec(element.parentNode.querySelector?.(".attn_background")?.id) ?? [];
    if (layer) return `layer ${params.include_layers[layer]}, head ${params.include_heads[head]}`;
    if (element.matches(".attn-line-group line")) {
      const column = [...element.parentNode.children].indexOf(element);
      const heading = document.querySelector("text.detail").textContent.toLowerCase();
      return `${heading}: ${left[upTo(element, "source-index")]} → ${right[column]} ${digits(element.__data__)}`;
    }
  }
  if (KIND === "neuron_view") {
    const place = `layer ${chosen("layer")}, head ${chosen("att_head")}`;
    if (element.matches(".attn-line-group line")) {
      const column = placeOf(element.__data__, [...element.parentNode.children].indexOf(element));
      return `${place}: ${left[upTo(element, "source-index")]} → ${right[column]} ${digits(element.__data__)}`;
    }
    if (element.matches(".element")) {
      const kind = element.closest("#queries, #keys, #product").id;
      const token = (kind === "queries" ? left : right)[upTo(element, "data-index")];
      const neuron = [...element.parentNode.querySelectorAll(".element")].indexOf(element);
      const name = { queries: "query of", keys: "key of", product: "q × k for" }[kind];
      return `${place}, neuron ${neuron}: ${name} ${token} ${digits(element.__data__)}`;
    }
    if (element.matches(".dotproduct")) {
      const row = [...element.parentNode.children].indexOf(element);
      return `${place}: q · k / √D for ${right[row]} ${digits(element.__data__)}`;
    }
  }
  return null;
}

document.addEventListener("mouseover", ({ target, clientX, clientY }) => {
  const text = describe(target);
  tip.hidden = text === null;
  if (text === null) return;
  tip.textContent = text;
  const zoom = +document.body.style.zoom || 1;
  const room = document.documentElement.clientWidth / zoom - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(clientX / zoom + 12, room)) + window.scrollX / zoom}px`;
  tip.style.top = `${clientY / zoom + 16 + window.scrollY / zoom}px`;
});

// The head view's tiles carry the numbers of their heads, since twelve share ten colours.
function numberTiles() {
  if (KIND !== "head_view") return;
  const group = document.querySelector("#vis > svg > g:last-child");
  if (!group || group.querySelector("text")) return;
  group.querySelectorAll("rect").forEach((tile, head) => {
    const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
    const place = { x: +tile.getAttribute("x") + 10, y: 14, "text-anchor": "middle", "font-size": 12, class: "tile" };
    for (const [name, value] of Object.entries(place)) label.setAttribute(name, value);
    label.textContent = head;
    group.append(label);
  });
}

// Make room for tokens longer than bertviz's columns, zoom out where the window is narrow, and give the frame, if
// this page is in one, the drawing's height. Once something is drawn the text beside the frame is not needed.
let fitted = 0; // the width it was made for: zoomed text is a little wider or narrower, which must not begin it again
function fit() {
  numberTiles();
  const texts = Array.from(document.querySelectorAll("svg text:not([transform])"), (text) => text.getBBox());
  const left = Math.min(0, ...texts.map((box) => box.x));
  const right = Math.max(window.bertviz_params.width, ...texts.map((box) => box.x + box.width));
  const needed = right - left + 24; // 8 px of padding on either side, and a little air
  if (Math.abs(needed - fitted) > 8) {
    fitted = needed;
    document.getElementById("view").style.paddingLeft = `${-left}px`;
  }
  document.body.style.zoom = Math.min(1, document.documentElement.clientWidth / fitted) || 1;
  const frame = window.frameElement;
  const height = Math.ceil(document.body.getBoundingClientRect().bottom);
  if (frame && height > 0) {
    frame.style.height = `${height}px`;
    if (texts.length) frame.nextElementSibling.style.display = "none";
  }
}

new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.body);
for (const type of ["resize", "change", "click"]) window.addEventListener(type, fit);
