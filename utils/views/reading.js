// Runs in the page of a view before bertviz draws: what a reader has beside bertviz's drawing. Numbers under the
// pointer, a threshold, a picture to keep, the keyboard, the theme of the page around, and room for it all.

const root = document.documentElement, vis = document.getElementById("vis");
const all = (selector) => [...document.querySelectorAll(selector)];
const chosen = (id) => document.getElementById(id)?.value;
const upTo = (element, name) => +element.closest(`[${name}]`)?.getAttribute(name);
const place = (element) => [...element.parentNode.children].indexOf(element);

// What a reader can point at or move to, by kind of view. `across` is the number of elements in a row, 1 for a column.
const TILES = "#vis > svg > g:last-child > rect";
const CELLS = "#vis > svg > g:has(> .attn_background) > rect:last-child";
const GROUPS = {
  head_view: [
    { selector: TILES, across: () => Infinity, role: "checkbox" },
    { selector: "#left > g:last-child > g", from: true },
    { selector: "#right > g:last-child > g", from: false },
  ],
  model_view: [
    { selector: CELLS, across: () => params.include_heads.length, role: "button" },
    { selector: "g.detail:has(.highlight):not(g.detail:has(.highlight) ~ g.detail) > g", from: true },
  ],
  neuron_view: [
    { selector: "#collapsed[visibility=visible] #leftText > g", from: true, role: "button" },
    { selector: "#expanded[visibility=visible] #leftText > g", role: "button" },
    ...["queries", "keys", "product"].map((id) => (
      { selector: `#expanded[visibility=visible] #${id} .element`, across: () => panel().queries[0][0][0].length }
    )),
    { selector: "#expanded[visibility=visible] .dotproduct" },
  ],
}[KIND];
const params = window.bertviz_params;
const panel = () => params.attention[chosen("filter") ?? params.default_filter];
const groupOf = (element) => GROUPS.find(({ selector }) => element.matches?.(selector));

// In words and numbers. d3 keeps each element's datum.

const digits = (number) => Number(number).toFixed(2).replace("-", "\u2212");

function describe(element) {
  const { left_text: left, right_text: right } = panel();
  const between = (row, column, weight) => `${left[row]} → ${right[column]} ${digits(weight)}`;
  if (KIND === "head_view") {
    if (element.matches("#attention line")) {
      const head = `layer ${chosen("layer")}, head ${upTo(element, "head-index")}`;
      return `${head}: ${between(upTo(element, "left-token-index"), upTo(element, "right-token-index"), element.__data__)}`;
    }
    if (element.matches(TILES)) return `head ${all(TILES).indexOf(element)}`;
  }
  if (KIND === "model_view") {
    if (element.matches(CELLS)) {
      const [, layer, head] = /_(\d+)_(\d+)$/.exec(element.parentNode.querySelector(".attn_background").id);
      return `layer ${params.include_layers[layer]}, head ${params.include_heads[head]}`;
    }
    if (element.matches(".attn-line-group line")) {
      const heading = document.querySelector("text.detail").textContent.toLowerCase();
      return `${heading}: ${between(upTo(element, "source-index"), place(element), element.__data__)}`;
    }
  }
  if (KIND === "neuron_view") {
    const head = `layer ${chosen("layer")}, head ${chosen("att_head")}`;
    if (element.matches(".attn-line-group line")) {
      const column = placeOf(element.__data__, place(element));
      return `${head}: ${between(upTo(element, "source-index"), column, element.__data__)}`;
    }
    if (element.matches(".element")) {
      const kind = element.closest("#queries, #keys, #product").id;
      const token = (kind === "queries" ? left : right)[upTo(element, "data-index")];
      const name = { queries: "query of", keys: "key of", product: "q × k for" }[kind];
      return `${head}, neuron ${place(element) - 1}: ${name} ${token} ${digits(element.__data__)}`;
    }
    if (element.matches(".dotproduct")) {
      return `${head}: q · k / √D for ${right[place(element)]} ${digits(element.__data__)}`;
    }
  }
  return null;
}

const addBox = (id, values) => document.body.appendChild(Object.assign(document.createElement("div"), { id, ...values }));
const tip = addBox("tip", { role: "status" });
const ring = addBox("ring", { hidden: true }); // around what the keyboard is at

function tell(element, x, y) {
  tip.textContent = (element.matches && describe(element)) ?? "";
  if (!tip.textContent) return;
  const room = root.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(x + 12, room)) + window.scrollX}px`;
  tip.style.top = `${y + 16 + window.scrollY}px`;
}

document.addEventListener("mouseover", ({ target, clientX, clientY }) => {
  tell(target, clientX, clientY);
  showHead(target.matches?.(TILES) ? all(TILES).indexOf(target) : null);
});

// The head view fades what is not of the tile under the pointer or at the keyboard.
function showHead(head) {
  for (const [index, group] of all("#attention > .headAttention").entries()) {
    group.style.opacity = head === null || head === index ? "" : 0.05;
  }
}

// The threshold hides lines, and the picture holds what is shown.

function hideLines() {
  const lowest = threshold();
  document.querySelector("output").textContent = lowest.toFixed(2);
  for (const line of all("#vis line, #vis .qk-line-group path")) {
    const { __data__: weight } = line;
    if (typeof weight === "number" || weight instanceof Number) line.style.display = weight < lowest ? "none" : "";
  }
}

document.getElementById("threshold").addEventListener("input", () => {
  hideLines();
  all("foreignObject").forEach(repaint);
});

function picture() {
  const drawn = vis.querySelector("svg"), { left, right, bottom } = extent(), svg = drawn.cloneNode(true);
  const canvas = drawn.querySelector("canvas");
  if (canvas) {
    const image = document.createElementNS(svg.namespaceURI, "image"), sheet = svg.querySelector("foreignObject");
    const { width, height } = drawn.querySelector("foreignObject").getBBox();
    setAttributes(image, { width, height, href: canvas.toDataURL(), style: sheet.getAttribute("style") });
    sheet.replaceWith(image);
  }
  const rules = [...document.styleSheets[0].cssRules].map((rule) => rule.cssText).join("\n");
  for (const [name, textContent] of Object.entries({ style: rules, title: document.title })) {
    svg.prepend(Object.assign(document.createElementNS(svg.namespaceURI, name), { textContent }));
  }
  const width = right - left + 16, height = bottom + 16;
  setAttributes(svg, { width, height, viewBox: `${left - 8} -8 ${width} ${height}`, class: root.className });
  const { backgroundColor, fontFamily } = getComputedStyle(document.body);
  Object.assign(svg.style, { backgroundColor, fontFamily });
  return new XMLSerializer().serializeToString(svg);
}

document.getElementById("save").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([picture()], { type: "image/svg+xml" }));
  const choices = ["layer", "att_head"].map(chosen).filter((value) => value !== undefined);
  Object.assign(document.createElement("a"), { href: address, download: `${[KIND, ...choices].join("_")}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
});

// The keyboard: Tab comes to each group, arrow keys move in it, Enter is a click, and a token's lines are told one by
// one, strongest first. bertviz hears what the keyboard is at as if it were the pointer.

const fire = (element, type) => element.dispatchEvent(new MouseEvent(type, { bubbles: type !== "mouseleave" }));
let walked = null; // how many of a token's lines were told
let byKeyboard = false; // whether a key was pressed since the last click
document.addEventListener("pointerdown", () => { byKeyboard = false; }, true);
document.addEventListener("keydown", () => { byKeyboard = true; }, true);

document.addEventListener("focusin", ({ target }) => {
  const group = groupOf(target);
  ring.hidden = !group || !byKeyboard;
  if (!group) return;
  all(group.selector).filter((element) => element.tabIndex === 0).forEach((element) => { element.tabIndex = -1; });
  target.tabIndex = 0;
  walked = null;
  if (describe(target)) target.setAttribute("aria-label", describe(target)); // products change with the query
  if (ring.hidden) return; // the pointer is there itself
  fire(target, "mouseover");
  const { left, bottom } = surround(target);
  tell(target, left, bottom - 8);
});

document.addEventListener("focusout", ({ target }) => {
  if (!groupOf(target)) return;
  ring.hidden = true;
  tip.textContent = "";
  showHead(null);
  markLine(null);
  for (const element of [target, target.closest("#left, #right")]) if (element) fire(element, "mouseleave");
});

function surround(element) {
  const box = element.getBoundingClientRect();
  Object.assign(ring.style, {
    left: `${box.left + window.scrollX - 3}px`, top: `${box.top + window.scrollY - 3}px`,
    width: `${box.width + 2}px`, height: `${box.height + 2}px`,
  });
  return box;
}

vis.addEventListener("scroll", () => { if (!ring.hidden) surround(document.activeElement); });

document.addEventListener("keydown", (event) => {
  const { target, key, shiftKey } = event, group = groupOf(target);
  if (!group) return;
  const elements = all(group.selector), index = elements.indexOf(target), across = group.across?.() ?? 1;
  const sideways = { ArrowRight: 1, ArrowLeft: -1 }[key], upwards = { ArrowDown: across, ArrowUp: -across }[key];
  if (sideways && group.from !== undefined) walkLines(target, index, group.from, sideways);
  else if (sideways || upwards) goTo(elements, index + (sideways ?? upwards), group);
  else if (key === "Enter" || key === " ") press(target, shiftKey);
  else if (key === "Escape" && document.querySelector(".detail")) closeDetail();
  else return;
  event.preventDefault();
});

function goTo(elements, index, group) {
  if (!elements[index]) return;
  introduce(elements[index], index, group);
  elements[index].focus();
}

// Enter is a click, on a token of the neuron view one at its + or −; Shift+Enter a double click.
function press(element, twice) {
  if (!element.matches("#leftText > g")) fire(element, twice ? "dblclick" : "click");
  else {
    const index = place(element);
    fire(element.lastElementChild, "click");
    all("[visibility=visible] > #leftText > g")[index].focus();
  }
}

function closeDetail() {
  const { detail_layer: layer, detail_head: head } = window.config;
  const cell = document.getElementById(`attn_background_${layer}_${head}`).parentNode.lastElementChild;
  fire(cell, "click");
  cell.focus();
}

function walkLines(token, index, from, step) {
  const lines = all({
    head_view: `#attention line[${from ? "left" : "right"}-token-index="${index}"]`,
    model_view: `.attn-line-group[source-index="${index}"] line`,
    neuron_view: `#collapsed .attn-line-group[source-index="${index}"] line`,
  }[KIND]).filter((line) => line.style.display !== "none" && +line.getAttribute("stroke-opacity") > 0);
  lines.sort((one, other) => other.__data__ - one.__data__);
  walked = Math.min(lines.length - 1, Math.max(-1, (walked ?? -1) + step));
  markLine(lines[walked] ?? null);
  if (walked >= 0) tell(lines[walked], token.getBoundingClientRect().right, token.getBoundingClientRect().bottom - 8);
}

function markLine(line) {
  all("line.told").forEach((old) => old.classList.remove("told"));
  line?.classList.add("told");
}

// What bertviz has just drawn: names for screen readers, a way in for the keyboard, numbers on the head view's tiles.

function equip() {
  for (const group of GROUPS) {
    const elements = all(group.selector), named = group.role || group.from !== undefined;
    elements.slice(0, named ? Infinity : 1).forEach((element, index) => introduce(element, index, group));
    if (elements.length && !elements.some((element) => element.tabIndex === 0)) elements[0].tabIndex = 0;
  }
  if (KIND === "head_view") all(TILES).forEach(numberTile);
  if (KIND === "model_view") {
    for (const cell of all(CELLS)) {
      cell.setAttribute("aria-expanded", +cell.parentNode.firstChild.getAttribute("stroke-opacity") > 0);
    }
  }
  for (const sign of all("#leftText > g > .highlight ~ rect")) {
    if (+sign.getAttribute("width") === 26) continue; // 16 px are too few for a finger
    for (const name of ["x", "y"]) sign.setAttribute(name, +sign.getAttribute(name) - 5);
    for (const name of ["width", "height"]) sign.setAttribute(name, 26);
  }
  if (threshold() > 0) hideLines();
}

// A name for screen readers; the many numbers of the neuron view get theirs when the keyboard comes to them.
function introduce(element, index, { role = "img", from }) {
  if (element.hasAttribute("role")) return;
  const { left_text: left, right_text: right } = panel();
  const name = describe(element) ?? `${(from === false ? right : left)[index]}, token ${index + 1}`;
  setAttributes(element, { role, tabindex: -1, "aria-label": name });
}

function numberTile(tile, head) {
  const group = tile.parentNode;
  tile.setAttribute("aria-checked", window.config.headVis[head]);
  if (group.querySelectorAll("text").length > head) return;
  const label = document.createElementNS(tile.namespaceURI, "text");
  const x = +tile.getAttribute("x") + 13;
  setAttributes(label, { x, y: 18, "text-anchor": "middle", "font-size": 13, class: "tile" });
  label.textContent = head;
  group.append(label);
}

new MutationObserver(equip).observe(vis, { childList: true, subtree: true });
document.addEventListener("click", () => {
  equip(); // a tile was switched
  if (vis.scrollWidth > vis.clientWidth) document.querySelector("rect.detail")?.scrollIntoView({ block: "nearest", inline: "nearest" });
});

// Another part of a pair has other tokens: what was open is closed.
document.getElementById("filter")?.addEventListener("change", () => {
  Object.assign(window.config, { index: null, detail_layer: null, detail_head: null });
});

// A view without a display_mode of its own is dark where letters around its frame are light, and, saved, where the
// reader's system asks for it. Pages change their themes in many ways, so it is looked at now and then.

function isDark() {
  if (!window.frameElement) return window.matchMedia("(prefers-color-scheme: dark)").matches;
  const [red, green, blue] = getComputedStyle(window.frameElement).color.match(/[\d.]+/g).map(Number);
  return red + green + blue > 384;
}

function followTheme() {
  const mode = isDark() ? "dark" : "light";
  if (root.classList.contains(mode)) return;
  root.classList.remove("auto", "light", "dark");
  root.classList.add(mode);
  params.display_mode = mode;
  if (!window.redraw) return;
  Object.assign(window.config, { mode, detail_layer: null, detail_head: null });
  window.redraw();
}

if (root.classList.contains("auto")) {
  followTheme();
  setInterval(followTheme, 500);
}

// Make room for tokens longer than bertviz's columns, draw smaller where the window is narrow, as long as the letters
// can be read, and give the frame, if this page is in one, the drawing's height. Once something is drawn the text
// beside the frame is not needed.

const SMALLEST = 24 / 26; // what is pressed has 26 pixels, and the smallest letters 13
let fitted = 0; // the width it was made for: zoomed text is a little wider or narrower, which must not begin it again

function extent() {
  const texts = all("#vis text:not([transform])").map((text) => text.getBBox());
  return {
    texts,
    left: Math.min(0, ...texts.map((box) => box.x)),
    right: Math.max(params.width, ...texts.map((box) => box.x + box.width)),
    bottom: +vis.querySelector("svg").getAttribute("height").replace("px", ""),
  };
}

function fit() {
  if (!vis.querySelector("svg")) return;
  const { texts, left, right } = extent(), needed = right - left + 8;
  if (Math.abs(needed - fitted) > 8) {
    fitted = needed;
    vis.style.paddingLeft = `${-left}px`;
  }
  if (!vis.firstChild.style.minWidth) vis.firstChild.style.minWidth = `${right}px`; // bertviz has drawn anew
  vis.style.zoom = Math.max(SMALLEST, Math.min(1, vis.parentNode.clientWidth / fitted)) || 1;
  const frame = window.frameElement, height = Math.ceil(document.body.getBoundingClientRect().bottom);
  if (frame && height > 0) {
    frame.style.height = `${height}px`;
    if (texts.length) frame.nextElementSibling.style.display = "none";
  }
}

root.classList.toggle("framed", window.parent !== window);
new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.body);
for (const type of ["resize", "change", "click"]) window.addEventListener(type, fit);
