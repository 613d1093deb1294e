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

// Make room for tokens longer than bertviz's columns, zoom out where the window is narrow, and give the frame, if
// this page is in one, the drawing's height. Once something is drawn the text beside the frame is not needed.
let fitted = 0; // the width it was made for: zoomed text is a little wider or narrower, which must not begin it again
function fit() {
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
