// Runs in the page of a view before bertviz's code: the parts of require.js, jQuery and d3 that it calls, and its data.

// Numbers travel as ten-thousandths, compressed: 2n for n, 2n - 1 for -n, the low bytes of all of them first.
async function unpackNumbers({ shape, data: packed }) {
  const planes = await inflate(packed),
    count = shape.reduce((product, size) => product * size),
    depth = planes.length / count;
  let at = 0;
  function next() {
    let code = 0;
    for (let plane = depth - 1; plane >= 0; plane--) code = code * 256 + planes[plane * count + at];
    at++;
    return (code % 2 ? -(code + 1) : code) / 20000;
  }
  const build = ([size, ...rest]) => Array.from({ length: size }, () => (rest.length ? build(rest) : next()));
  return build(shape);
}

// The part of a pair's attention from the tokens [start, end) of `rows` to those of `columns`.
function cutPanel(whole, rows, columns) {
  const eachHead = (layers, cut) => layers?.map((heads) => heads.map(cut));
  return {
    left_text: whole.left_text.slice(...rows),
    right_text: whole.right_text.slice(...columns),
    attn: eachHead(whole.attn, (weights) => weights.slice(...rows).map((row) => row.slice(...columns))),
    queries: eachHead(whole.queries, (vectors) => vectors.slice(...rows)),
    keys: eachHead(whole.keys, (vectors) => vectors.slice(...columns)),
  };
}

// A panel of whole words in place of their pieces; a query and a key belong to a piece, so the neuron view has none.
function mergeWords(panel) {
  const { left, right, ...texts } = panel.words;
  return { ...panel, ...texts, attn: panel.attn.map((heads) => heads.map((rows) => wholeWords(rows, left, right))) };
}

const pieces = { ...data.attention },
  { sentence_b_start: firstOfB, token: firstToken } = data;
async function unpackPanels() {
  for (const panel of Object.values(pieces)) {
    for (const name of ["attn", "queries", "keys"]) if (panel[name]) panel[name] = await unpackNumbers(panel[name]);
    // A masked token, which has no part in the softmax, has the weight -0.
    panel.attn.flat(2).forEach((row) =>
      row.forEach((weight, at) => {
        if (weight < 0) row[at] = -0;
      }),
    );
  }
  showWords(data.whole);
}

// Show whole words or their pieces, in each panel and in the parts of a pair.
function showWords(whole) {
  const panels = data.attention,
    words = (whole && pieces[data.default_filter].words?.left) || [];
  Object.assign(data, { whole, sentence_b_start: words[firstOfB] ?? firstOfB, token: words[firstToken] ?? firstToken });
  for (const [name, panel] of Object.entries(pieces)) panels[name] = whole && panel.words ? mergeWords(panel) : panel;
  if (firstOfB === null) return;
  const a = [0, data.sentence_b_start],
    b = [data.sentence_b_start],
    parts = { aa: [a, a], bb: [b, b], ab: [a, b], ba: [b, a] };
  for (const [name, [rows, columns]] of Object.entries(parts)) panels[name] = cutPanel(panels.all, rows, columns);
}

window.PYTHON_PARAMS = window.bertviz_params = data;
window.requirejs = (names, draw) => start(() => draw(jQuery, d3));

// Run our code of this view and bertviz's, which are compressed, when the numbers are unpacked.
async function runCompressed(code) {
  await unpackPanels();
  add(document.body, "script", {}, new TextDecoder().decode(await inflate(code)));
}

// d3's selections: groups of nodes, each with its parent and the parent's index. A node keeps its datum in __data__, as
// in d3, and its index among the data; what is still to be appended is { parent, datum }. Of very many lines only the
// strongest are drawn.
const MOST_DRAWN = 20000;
const cut = { weights: null, lowest: 0 };
function lowestDrawn() {
  const weights = view.drawn();
  if (cut.weights !== weights) {
    const every = Float64Array.from(weights.flat(Infinity)),
      most = MOST_DRAWN / (view.lines ?? 1);
    Object.assign(cut, {
      weights,
      lowest: every.length > most ? Math.max(0.0001, every.sort()[every.length - Math.floor(most)]) : 0,
    });
    const count = every.length.toLocaleString("en"),
      note = document.getElementById("many");
    note.textContent = cut.lowest
      ? `Drawn are the ${Math.floor(most).toLocaleString("en")} strongest of ${count} lines.`
      : "";
  }
  return cut.lowest;
}

class Selection {
  constructor(groups) {
    this.groups = groups;
  }
  each(action) {
    for (const { nodes } of this.groups)
      nodes.forEach((node, i) => {
        if (node) action(node, i);
      });
    return this;
  }
  map(change) {
    return new Selection(
      this.groups.map((group) => ({ ...group, nodes: group.nodes.map((node, i) => node && change(node, i)) })),
    );
  }
  apply(value, change) {
    return this.each((node, i) =>
      change(node, typeof value === "function" ? value.call(node, node.__data__, i) : value),
    );
  }
  select(selector) {
    return this.map((node) => node.querySelector(selector));
  }
  selectAll(selector) {
    const groups = [];
    this.each((parent, at) => groups.push({ parent, at, nodes: [...parent.querySelectorAll(selector)] }));
    return new Selection(groups);
  }
  data(values) {
    this.entering = this.groups.map(({ parent, at, nodes }) => {
      const list = [...(typeof values === "function" ? values.call(parent, parent.__data__, at) : values)];
      nodes.forEach((node, i) => {
        node.__data__ = list[i];
      });
      return { parent, at, nodes: list.slice(nodes.length).map((datum) => ({ parent, datum })) };
    });
    return this;
  }
  enter() {
    return new Selection(this.entering);
  }
  append(name) {
    return this.map((node, i) => {
      const { parent = node, datum = node.__data__ } = node.nodeType ? {} : node;
      if (/^(line|path)$/.test(name) && typeof datum === "number" && datum < lowestDrawn()) return null;
      const element = document.createElementNS(SVG, name.replace("svg:", ""));
      Object.assign(element, { __index__: i }, datum === undefined ? {} : { __data__: datum });
      return parent.appendChild(element);
    });
  }
  attr(name, value) {
    return this.apply(value, (node, now) => (now === null ? node.removeAttribute(name) : node.setAttribute(name, now)));
  }
  style(name, value) {
    return this.apply(value, (node, now) => node.style.setProperty(name, now));
  }
  text(value) {
    return this.apply(value, (node, now) => {
      node.textContent = now;
    });
  }
  classed(name, on) {
    return this.each((node) => node.classList.toggle(name, on));
  }
  on(type, act) {
    return this.each((node, i) => node.addEventListener(type, () => act.call(node, node.__data__, i)));
  }
  remove() {
    return this.each((node) => node.remove());
  }
}

// The jQuery methods that bertviz calls, on a list of elements.
class Elements extends Selection {
  append(children) {
    return this.each((element) => element.append(...children.groups[0].nodes));
  }
  empty() {
    return this.each((element) => element.replaceChildren());
  }
  val(value) {
    return this.each((element) => {
      element.value = value;
    });
  }
  on(type, handler) {
    return this.each((element) => element.addEventListener(type, handler));
  }
  change() {
    return this.each((element) => element.dispatchEvent(new Event("change")));
  }
}

function jQuery(selector) {
  const [, name] = /^<(\w+) \/>$/.exec(selector) ?? [];
  return new Elements([{ nodes: name ? [document.createElement(name)] : [...document.querySelectorAll(selector)] }]);
}

const d3 = {
  select: (one) => new Selection([{ nodes: [typeof one === "string" ? document.querySelector(one) : one] }]),
  selectAll: (selector) => new Selection([{ nodes: [...document.querySelectorAll(selector)] }]),
  schemeCategory10: Array(10).fill("var(--key)"),
  scaleOrdinal: (colours) => (index) => colours[index % colours.length],
  hsl: (colour) => ({ l: 0, s: 0, toString: () => colour }),
  line() {
    const read = {},
      path = (points) => `M${points.map((point) => `${read.x(point)},${read.y(point)}`).join("L")}`;
    return Object.assign(path, {
      x: (get) => {
        read.x = get;
        return path;
      },
      y: (get) => {
        read.y = get;
        return path;
      },
    });
  },
};
