// Runs in the frame of bertviz's own drawing, before its unchanged code: the parts of require.js, jQuery and d3 that it
// calls.

// d3's selections: groups of nodes, each with its parent and the parent's index. A node keeps its datum in __data__, as
// in d3; what is still to be appended is { parent, datum }.
class Selection {
  constructor(groups) {
    this.groups = groups;
  }
  each(action) {
    for (const { nodes } of this.groups) nodes.forEach((node, i) => action(node, i));
    return this;
  }
  map(change) {
    return new Selection(this.groups.map((group) => ({ ...group, nodes: group.nodes.map(change) })));
  }
  apply(value, change) {
    return this.each((node, i) =>
      change(node, typeof value === "function" ? value.call(node, node.__data__, i) : value),
    );
  }
  select(selector) {
    return this.map((node) => node.querySelector(selector)).filled();
  }
  filled() {
    return new Selection(this.groups.map((group) => ({ ...group, nodes: group.nodes.filter(Boolean) })));
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
    return this.map((node) => {
      const { parent = node, datum = node.__data__ } = node.nodeType ? {} : node;
      const element = document.createElementNS("http://www.w3.org/2000/svg", name.replace("svg:", ""));
      if (datum !== undefined) element.__data__ = datum;
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

// A colour whose lightness and saturation can be changed.
function hsl(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [high, low] = [Math.max(r, g, b), Math.min(r, g, b)],
    span = high - low;
  const sector = high === r ? (g - b) / span : high === g ? 2 + (b - r) / span : 4 + (r - g) / span;
  return {
    l: (high + low) / 2,
    s: span / (1 - Math.abs(high + low - 1)) || 0,
    toString() {
      return `hsl(${60 * (sector || 0)} ${100 * this.s} ${100 * this.l})`;
    },
  };
}

const d3 = {
  select: (one) => new Selection([{ nodes: [typeof one === "string" ? document.querySelector(one) : one] }]),
  selectAll: (selector) => new Selection([{ nodes: [...document.querySelectorAll(selector)] }]),
  schemeCategory10: "1f77b4 ff7f0e 2ca02c d62728 9467bd 8c564b e377c2 7f7f7f bcbd22 17becf"
    .split(" ")
    .map((hex) => `#${hex}`),
  scaleOrdinal: (colours) => (index) => colours[index % colours.length],
  hsl,
  line() {
    const read = {},
      path = (points) => `M${points.map((point) => `${read.x(point)},${read.y(point)}`).join("L")}`;
    for (const name of ["x", "y"]) {
      path[name] = (get) => {
        read[name] = get;
        return path;
      };
    }
    return path;
  },
};

window.requirejs = (_, draw) => draw(jQuery, d3);
