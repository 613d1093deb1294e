// Runs in the page of a view before bertviz draws: what a reader has beside bertviz's drawing. Numbers under the
// pointer, a threshold, a picture to keep, the keyboard, the theme of the page around, and room for it all.

const vis = document.getElementById("vis");
const all = (selector) => [...document.querySelectorAll(selector)];
const chosen = (id) => document.getElementById(id)?.value;
const asSquares = () => chosen("drawing") === "squares"; // the model view, which matrices.js draws
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
    { selector: "#expanded[visibility=visible] #rightText > g" },
  ],
}[KIND];
const params = window.bertviz_params;
const panel = () => params.attention[chosen("filter") ?? params.default_filter];
const groupOf = (element) => GROUPS.find(({ selector }) => element.matches?.(selector));

// In words and numbers. d3 keeps each element's datum.

const digits = (number) => Number(number).toFixed(2).replace("-", "\u2212");

// A token, with its position, from 0, if the text has it twice.
function nameOf(tokens, index) {
  const once = tokens.indexOf(tokens[index]) === tokens.lastIndexOf(tokens[index]);
  return once ? tokens[index] : `${tokens[index]} (position ${index})`;
}

function between(row, column) {
  const { left_text: left, right_text: right } = panel();
  return `${nameOf(left, row)} → ${nameOf(right, column)}`;
}

// Layer and head of a drawing that shows one head.
function shownHead() {
  if (KIND === "neuron_view") return `layer ${chosen("layer")}, head ${chosen("att_head")}`;
  if (KIND === "head_view") return `layer ${chosen("layer")}, head ${weightsOf()[0].head}`;
  return document.querySelector("text.detail").textContent.toLowerCase();
}

function describe(element) {
  const { left_text: left, right_text: right } = panel();
  if (KIND === "head_view") {
    if (element.matches("#attention line")) {
      const [head, row, column] = ["head", "left-token", "right-token"].map((name) => upTo(element, `${name}-index`));
      return `layer ${chosen("layer")}, head ${head}: ${between(row, column)} ${digits(element.__data__)}`;
    }
    if (element.matches(TILES)) return `head ${all(TILES).indexOf(element)}`;
  }
  if (KIND === "model_view" && element.matches(CELLS)) {
    const [, layer, head] = /_(\d+)_(\d+)$/.exec(element.parentNode.querySelector(".attn_background").id);
    return `layer ${params.include_layers[layer]}, head ${params.include_heads[head]}${describeKind(+layer, +head)}`;
  }
  if (KIND !== "head_view" && element.matches(".attn-line-group line")) {
    const column = placeOf(element.__data__, place(element));
    return `${shownHead()}: ${between(upTo(element, "source-index"), column)} ${digits(element.__data__)}`;
  }
  if (KIND === "neuron_view") {
    if (element.matches(".element")) {
      const kind = element.closest("#queries, #keys, #product").id, token = upTo(element, "data-index");
      const name = { queries: "query of", keys: "key of", product: "q × k for" }[kind];
      const value = `${nameOf(kind === "queries" ? left : right, token)} ${digits(element.__data__)}`;
      return `${shownHead()}, neuron ${place(element) - 1}: ${name} ${value}`;
    }
    if (element.matches(".dotproduct")) {
      return `${shownHead()}: q · k / √D for ${nameOf(right, place(element))} ${digits(element.__data__)}`;
    }
    const key = element.closest("#expanded #rightText > g"), { index } = window.config;
    if (key && Number.isInteger(index)) {
      return `${shownHead()}: ${between(index, place(key))} ${digits(weightsOf()[0].weights[index][place(key)])}`;
    }
  }
  return null;
}

// What the token under the pointer takes most from, in a drawing that shows one head or few of them.
function describeToken(element) {
  const token = KIND !== "neuron_view" && element.closest(GROUPS.find(({ from }) => from).selector), heads = token ? weightsOf() : [];
  if (!heads.length || heads.length > 3) return null;
  const { left_text: left, right_text: right } = panel(), row = place(token);
  const each = heads.map(({ head, weights }) => {
    const largest = [...weights[row].entries()].sort(([, a], [, b]) => b - a).slice(0, 3).filter(([, weight]) => weight >= LEAST);
    const shares = largest.map(([column, weight]) => `${nameOf(right, column)} ${digits(weight)}`).join(", ");
    const which = heads.length > 1 ? `layer ${chosen("layer")}, head ${head}` : shownHead();
    return `${which}: ${nameOf(left, row)} → ${shares}`;
  });
  return each.join("\n");
}

// Lines lie upon each other, so which of them the pointer is at is decided by where they run, not by which was drawn
// last: of the pairs of tokens whose line is shown and passes within NEAR pixels, the one with the largest weight,
// which counts the less the farther its line is.

const NEAR = 4;
const ROW = 26; // from one token to the next, in every view
const LEAST = 0.005; // what would be told as 0.00 nobody sees
const STRONG = 0.2; // all heads of such a weight are told, and three in any case
const LINES = {
  head_view: "#attention line",
  model_view: ".attn-line-group line",
  neuron_view: "#collapsed[visibility=visible] .attn-line-group line",
}[KIND];
let followed = null; // the token whose lines are shown alone, with which column it is in

// The weights (rows, columns) of each head that is drawn as lines now.
function weightsOf() {
  const { config } = window, { attn } = panel();
  if (KIND === "neuron_view") return [{ head: config.head, weights: attn[config.layer][config.head] }];
  if (KIND === "model_view") return [{ head: config.detail_head, weights: attn[config.detail_layer][config.detail_head] }];
  return attn[config.layer_seq].map((weights, head) => ({ head, weights })).filter(({ head }) => config.headVis[head]);
}

// The pair of tokens whose line is at this point of the screen, and its heads and weights, largest first; or null.
function lineAt(clientX, clientY) {
  const line = document.querySelector(LINES);
  if (!line) return null;
  const { a: scale, e: originX, f: originY } = line.getScreenCTM(), heads = weightsOf();
  const [x1, x2, y1, y2] = ["x1", "x2", "y1", "y2"].map((name) => +line.getAttribute(name));
  const source = upTo(line, KIND === "head_view" ? "left-token-index" : "source-index");
  const top = y1 - source * ROW, width = x2 - x1, near = NEAR / scale;
  const along = ((clientX - originX) / scale - x1) / width, height = (clientY - originY) / scale - top;
  if (along < 0 || along > 1) return null;
  const lowest = Math.max(threshold(), MANY && KIND !== "model_view" ? VISIBLE * heads.length : LEAST);
  let found = null, best = 0;
  heads[0].weights.forEach((row, from) => row.forEach((_, to) => {
    if (followed && followed.index !== (followed.from ? from : to)) return;
    const rise = (to - from) * ROW, distance = Math.abs(height - from * ROW - along * rise) * width / Math.hypot(width, rise);
    if (distance >= near) return;
    for (const { weights } of heads) {
      const weight = weights[from][to], counts = weight * (1 - distance / near) ** 2;
      if (weight >= lowest && counts > best) [found, best] = [{ from, to }, counts];
    }
  }));
  if (!found) return null;
  const told = heads.map(({ head, weights }) => ({ head, weight: +weights[found.from][found.to] }));
  return { ...found, heads: told.filter(({ weight }) => weight >= lowest).sort((one, other) => other.weight - one.weight) };
}

function describeLine(target, x, y) {
  if (asSquares()) return describeCell(target, x, y);
  if (KIND === "model_view" && !target.matches("rect.detail")) return null;
  const line = lineAt(x, y);
  if (!line) return null;
  const { from, to, heads } = line;
  if (KIND !== "head_view") return `${shownHead()}: ${between(from, to)} ${digits(heads[0].weight)}`;
  const strong = heads.filter(({ weight }) => weight >= STRONG).length;
  const told = heads.slice(0, Math.max(3, strong)).map(({ head, weight }, number) => (
    `${number ? "," : ":"}${number && number % 3 === 0 ? "\n" : " "}head ${head} ${digits(weight)}` // three a line
  ));
  return `layer ${chosen("layer")}, ${between(from, to)}${told.join("")}`;
}

// The neuron view's colours, as bertviz draws them: a number's opacity is tanh(|number| / 4), a weight's the weight.
if (KIND === "neuron_view") {
  const scale = document.getElementById("vis").insertAdjacentElement("afterend", document.createElement("p"));
  const ramp = (...stops) => {
    const all = stops.map(([name, share]) => `color-mix(in srgb, var(--${name}) ${Math.round(100 * share)}%, transparent)`);
    const drawn = Object.assign(document.createElement("span"), { className: "ramp" });
    drawn.style.background = `linear-gradient(to right, ${all.join(", ")})`;
    return drawn;
  };
  const numbers = [-8, -6, -4, -2, 0, 2, 4, 6, 8].map((n) => [n < 0 ? "below" : "above", Math.tanh(Math.abs(n) / 4)]);
  scale.id = "scale";
  scale.append("Numbers: \u22128 ", ramp(...numbers), " 8 · Attention weights: 0 ", ramp(["weight", 0], ["weight", 1]), " 1");
}

const addBox = (id, values) => document.body.appendChild(Object.assign(document.createElement("div"), { id, ...values }));
const tip = addBox("tip", { role: "status" });
const ring = addBox("ring", { hidden: true }); // around what the keyboard is at

function tell(text, x, y) {
  tip.textContent = text ?? "";
  if (!text) return;
  const room = root.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(x + 12, room)) + window.scrollX}px`;
  tip.style.top = `${y + 16 + window.scrollY}px`;
}

document.addEventListener("mousemove", ({ target, clientX: x, clientY: y }) => {
  if (begins) return;
  tell(vis.contains(target) ? describe(target) ?? describeToken(target) ?? describeLine(target, x, y) : null, x, y);
});

document.addEventListener("mouseover", ({ target }) => {
  for (const { selector, from } of GROUPS) {
    const token = from !== undefined && target.closest?.(selector);
    if (token) follow({ index: place(token), from });
  }
  showHead(target.matches?.(TILES) ? all(TILES).indexOf(target) : null);
});

// bertviz shows all lines again when the pointer leaves a token, in the head view its column.
document.addEventListener("mouseleave", ({ target }) => {
  if (target.matches?.("#left, #right, g:has(> .token)")) follow(null);
}, true);

// The head view shares a line's opacity among the heads that are shown; the lines of one token are few enough for all
// of their weight.
let bright = [];
function follow(token) {
  followed = token;
  for (const line of bright) line.style.strokeOpacity = "";
  bright = token ? all("#attention line[visibility=visible]").filter((line) => +line.getAttribute("stroke-opacity") > 0) : [];
  for (const line of bright) line.style.strokeOpacity = line.__data__;
}

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
  if (asSquares()) paintSquares();
  else all("foreignObject").forEach(repaint);
});

// What the drop-downs, tiles and the threshold say, in words, for a picture that leaves them behind.
function stateInWords() {
  const { config } = window, said = [];
  if (KIND === "head_view") {
    const heads = weightsOf().map(({ head }) => head), some = heads.length < config.nHeads;
    said.push(`Layer ${chosen("layer")}, ${some ? `head${heads.length > 1 ? "s" : ""} ${heads.join(", ")}` : "all heads"}`);
  } else if (KIND === "neuron_view" || document.querySelector("text.detail")) {
    said.push(shownHead().replace("l", "L"));
  }
  if (asSquares() && byKind()) said.push(document.getElementById("rule").textContent);
  const filter = document.getElementById("filter");
  if (filter && filter.value !== "all") said.push(`attention: ${filter.selectedOptions[0].text.replace("->", "→")}`);
  if (threshold() > 0) said.push(`weights below ${threshold().toFixed(2)} hidden`);
  return said.join("; ");
}

// The heading names the layer and heads that are shown, and then what one sees of them.
const heading = document.querySelector("h1"), shows = heading.textContent.replace(/^./, (first) => first.toLowerCase());
function renameHeading() {
  const { config } = window;
  let which = `All ${params.include_layers?.length * params.include_heads?.length} heads`;
  if (KIND === "head_view") {
    const heads = weightsOf().map(({ head }) => head), some = heads.length < config.nHeads;
    which = `Layer ${chosen("layer")}, ${some ? `head${heads.length === 1 ? "" : "s"} ${heads.join(", ") || "none"}` : "all heads"}`;
  } else if (KIND === "neuron_view" || document.querySelector("text.detail")) {
    which = shownHead().replace("l", "L");
  }
  heading.textContent = `${which}: ${shows}`;
}

// Words in lines of so many letters.
function wrap(text, letters) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length > letters && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

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
  const width = right - left + 16, caption = [document.title, stateInWords()].filter(Boolean);
  const lines = caption.flatMap((text) => wrap(text, width / 7)), height = bottom + 24 + 16 * lines.length;
  for (const [number, textContent] of lines.entries()) {
    const text = Object.assign(document.createElementNS(svg.namespaceURI, "text"), { textContent });
    setAttributes(text, { x: left, y: bottom + 16 * (number + 1), "font-size": 12, class: "caption" });
    svg.append(text);
  }
  svg.removeAttribute("style");
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
  tell(describe(target), left, bottom - 8);
});

document.addEventListener("focusout", ({ target }) => {
  if (!groupOf(target) || ring.hidden) return; // what a finger or pointer has just shown stays
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
  if (upwards && target.matches(CELLS) && root.classList.contains("kinds")) goTo([squareTowards(target, key)], 0, group);
  else if (sideways && group.from !== undefined) walkLines(target, index, group.from, sideways);
  else if (sideways || upwards) goTo(elements, index + (sideways ?? upwards), group);
  else if (key === "Enter" || key === " ") press(target, shiftKey);
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !document.querySelector(".detail")) return;
  closeDetail();
  event.preventDefault(); // the keyboard stays in the picture
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
  const { right, bottom } = token.getBoundingClientRect();
  if (asSquares()) return tell(walkCells(index, step), right, bottom - 8);
  const lines = all({
    head_view: `#attention line[${from ? "left" : "right"}-token-index="${index}"]`,
    model_view: `.attn-line-group[source-index="${index}"] line`,
    neuron_view: `#collapsed .attn-line-group[source-index="${index}"] line`,
  }[KIND]).filter((line) => line.style.display !== "none" && +line.getAttribute("stroke-opacity") > 0);
  lines.sort((one, other) => other.__data__ - one.__data__);
  walked = Math.min(lines.length - 1, Math.max(-1, (walked ?? -1) + step));
  markLine(lines[walked] ?? null);
  if (walked < 0) return;
  tell(describe(lines[walked]), right, bottom - 8);
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
  if (KIND === "head_view") {
    all(TILES).forEach(numberTile);
    colourHeads();
  }
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
  if (!vis.querySelector("svg[viewBox]")) fit(); // bertviz has drawn anew
}

// A name for screen readers; the many numbers of the neuron view get theirs when the keyboard comes to them.
function introduce(element, index, { role = "img", from }) {
  if (element.hasAttribute("role")) return;
  const { left_text: left, right_text: right } = panel();
  const name = describe(element) ?? `${(from === false ? right : left)[index]}, position ${index}`;
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

// The hue of a head in the head view, which depends on how many are shown; bertviz colours each once.
function colourHeads() {
  const { headVis } = window.config, shown = headVis.filter(Boolean).length;
  all(TILES).forEach((tile, head) => { tile.style.fill = headVis[head] ? headColour(head, shown) : "var(--faint)"; });
  for (const group of all("#attention > g")) group.style.stroke = lineColour(headColour(upTo(group, "head-index"), shown));
  for (const group of all(".attentionBoxes > g")) {
    const hue = headColour(upTo(group, "head-index"), shown);
    group.style.fill = hue === colour("key") && !(shown > 1 && shown <= FEW) ? "var(--weight)" : hue;
  }
}

new MutationObserver(equip).observe(vis, { childList: true, subtree: true });
document.addEventListener("dblclick", equip);
document.addEventListener("click", () => {
  equip(); // a tile was switched
  const head = document.querySelector("rect.detail")?.getBoundingClientRect(), { left, right } = vis.getBoundingClientRect();
  if (head) vis.scrollLeft += Math.max(0, head.right - right) || Math.min(0, head.left - left);
});

// Another part of a pair has other tokens: what was open is closed.
document.getElementById("filter")?.addEventListener("change", () => {
  Object.assign(window.config, { index: null, detail_layer: null, detail_head: null });
});

// A view without a display_mode of its own follows the page around it, and is drawn anew when that changes.
function drawIn(mode) {
  params.display_mode = mode;
  if (!window.config) return;
  follow(null);
  Object.assign(window.config, { mode, detail_layer: null, detail_head: null });
  window.redraw();
  if (KIND === "head_view") begin();
}

if (root.classList.contains("auto")) keepTheme(drawIn);

// Make room for tokens longer than bertviz's columns, draw smaller where the window is narrow, as long as the letters
// can be read. What is still too wide is scrolled.

// What is pressed has 26 pixels, and the smallest letters 13; the model view's cells are larger, and its letters do not
// shrink with it.
const smallest = () => (asSquares() ? 1 : KIND === "model_view" ? 0.7 : 24 / 26);
let fitted = 0; // the width it was made for: smaller text is a little wider or narrower, which must not begin it again

function extent() {
  const texts = all("#vis text:not([transform])").map((text) => text.getBBox());
  return {
    texts,
    left: Math.min(0, ...texts.map((box) => box.x)),
    right: Math.max(params.width, ...texts.map((box) => box.x + box.width)),
    bottom: parseFloat(vis.querySelector("svg").getAttribute("height")),
  };
}

function fit() {
  const svg = vis.querySelector("svg");
  if (!svg) return;
  renameHeading();
  if (asSquares() && Math.abs(vis.clientWidth - arrangedFor) > 8) return arrange();
  const { texts, left, right, bottom } = extent(), needed = right - left + 8;
  if (Math.abs(needed - fitted) > 8 || !svg.hasAttribute("viewBox")) {
    fitted = needed;
    setAttributes(svg, { viewBox: `${left} 0 ${needed} ${bottom}`, width: needed, height: bottom });
    Object.assign(svg.style, { width: "100%", maxWidth: `${needed}px`, minWidth: `${smallest() * needed}px`, height: "auto" });
  }
  root.classList.toggle("wide", vis.scrollWidth > vis.clientWidth);
  root.classList.toggle("half", KIND === "neuron_view" && !document.querySelector("#expanded[visibility=visible]"));
  root.style.setProperty("--scale", svg.getScreenCTM()?.a ?? 1);
  fitFrame(texts.length > 0);
}

new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.body);
for (const type of ["resize", "change", "click", "dblclick"]) window.addEventListener(type, fit);

// `explore` replaces its frame whenever a text is typed or another view is chosen. What the reader has chosen in a view
// stays on the element around it, and the next view begins with it.

const keeper = window.frameElement?.closest(".keeps-choices");
const kept = JSON.parse(keeper?.dataset.choices ?? "{}"); // layer, heads, threshold and whether a head is enlarged

function beginWithKept() {
  const { layer, heads, threshold: lowest = 0 } = kept;
  if (heads) Object.assign(params, { layer, heads, head: heads[0] });
  const slider = document.getElementById("threshold");
  slider.value = lowest;
  slider.nextElementSibling.textContent = threshold().toFixed(2);
}

function enlargeKept() {
  const cell = document.getElementById(`attn_background_${kept.layer}_${kept.heads?.[0]}`);
  if (cell && kept.enlarged) fire(cell.parentNode.lastElementChild, "click");
}

function keep() {
  const { config } = window, now = { threshold: threshold() };
  if (KIND === "head_view") Object.assign(now, { layer: config.layer, heads: weightsOf().map(({ head }) => head) });
  if (KIND === "neuron_view") { // which shows the first of several heads
    Object.assign(now, { layer: config.layer, heads: config.head === kept.heads?.[0] ? kept.heads : [config.head] });
  }
  if (KIND === "model_view") {
    now.enlarged = Number.isInteger(config.detail_layer);
    if (now.enlarged) Object.assign(now, { layer: config.detail_layer, heads: [config.detail_head] });
  }
  keeper.dataset.choices = JSON.stringify(Object.assign(kept, now));
}

if (keeper) {
  beginWithKept();
  window.addEventListener("load", enlargeKept);
  for (const type of ["click", "dblclick", "change", "input"]) window.addEventListener(type, keep);
}

// A view that is given a token begins there: as if the pointer were on it, in the neuron view with its row opened. This
// lasts until the reader's pointer or keyboard comes; a photograph shows it.
let begins = true;

function begin() {
  const token = all(GROUPS.find(({ from }) => from).selector)[params.token ?? -1];
  if (!begins || !token) return;
  fire(token, "mouseover");
  if (KIND === "neuron_view") return fire(token.lastElementChild, "click");
  const { left, bottom } = vis.getBoundingClientRect();
  tell(describeToken(token), left, bottom - 8);
  if (tip.textContent) vis.style.marginBottom = `${tip.offsetHeight + 12}px`; // which is kept: nothing may move later
  fit();
}

function endBeginning() {
  if (begins && KIND === "head_view") {
    tip.textContent = "";
    fire(document.getElementById("left"), "mouseleave");
  }
  begins = false;
}

window.addEventListener("load", () => {
  begin();
  for (const type of ["pointerenter", "focusin"]) vis.addEventListener(type, endBeginning, { once: true });
  document.addEventListener("change", endBeginning, { once: true, capture: true });
});
