// Runs in the page of a view before bertviz draws: adds numbers under the pointer, a threshold, access by keyboard,
// room for everything, and choices that are kept. What differs between the views is in `view`, of head.js, matrices.js
// or sums.js.

const vis = document.getElementById("vis");
const tip = add(document.body, "div", { id: "tip", role: "status" });
const ring = add(document.body, "div", { id: "ring", hidden: "" }); // around what the keyboard is at
const all = (selector) => [...document.querySelectorAll(selector)];
const chosen = (id) => document.getElementById(id)?.value;
const asLines = () => !view.draw || chosen("drawing") === "lines"; // which bertviz draws
const panel = () => data.attention[chosen("filter") ?? data.default_filter];
const placeOf = (element) => [...element.parentNode.children].indexOf(element);
const threshold = () => +chosen("threshold");
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
const fire = (element, type) => element.dispatchEvent(new MouseEvent(type, { bubbles: type !== "mouseleave" }));

// In words and numbers

const MIN_WEIGHT = 0.005; // smaller weights would read 0.00
const STRONG = 0.2;

// A token, with its position, from 0, if the text has it twice.
function nameOf(tokens, index) {
  const once = tokens.indexOf(tokens[index]) === tokens.lastIndexOf(tokens[index]);
  return once ? tokens[index] : `${tokens[index]} (position ${index})`;
}

const between = (row, column) => `${nameOf(panel().left_text, row)} → ${nameOf(panel().right_text, column)}`;
const capital = (text) => text.replace(/^./, (first) => first.toUpperCase());

// A line or cell of one head.
function describeWeight(head, row, column) {
  return `${view.named([head])}: ${between(row, column)} ${format(head.weights[row][column])}`;
}

function describe(element) {
  const line = element.closest("line");
  if (line && typeof line.__data__ === "number") {
    const { head, row } = view.ends(line);
    return describeWeight(head, row, line.__index__);
  }
  return view.describe(element);
}

function showTip(text, x, y) {
  tip.textContent = text ?? "";
  if (!text) return;
  const room = root.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(x + 12, room)) + scrollX}px`;
  tip.style.top = `${y + 16 + scrollY}px`;
}

document.addEventListener("mousemove", ({ target, clientX: x, clientY: y }) => {
  if (window.config) showTip(vis.contains(target) ? (describe(target) ?? describeLine(target, x, y)) : null, x, y);
});

// Lines cross, so where they run decides which of them the pointer is at: of those that are shown and pass within NEAR
// pixels, the one with the largest weight, which counts less the farther its line is.

const NEAR = 4;

// The pair of tokens whose line is at this point of the screen, and its heads and weights, largest first; or null.
function lineAt(clientX, clientY) {
  const line = vis.querySelector(view.selector);
  if (!line) return null;
  const { a: scale, e: originX, f: originY } = line.getScreenCTM(),
    heads = view.heads();
  const [x1, x2, y1] = ["x1", "x2", "y1"].map((name) => +line.getAttribute(name));
  const top = y1 - view.ends(line).row * view.row,
    width = x2 - x1,
    near = NEAR / scale;
  const along = ((clientX - originX) / scale - x1) / width,
    height = (clientY - originY) / scale - top;
  if (along < 0 || along > 1) return null;
  const lowest = Math.max(threshold(), MIN_WEIGHT, lowestDrawn());
  let found = null,
    best = 0;
  heads[0].weights.forEach((values, row) =>
    values.forEach((_, column) => {
      if (!view.shows(row, column)) return;
      const rise = (column - row) * view.row,
        distance = (Math.abs(height - row * view.row - along * rise) * width) / Math.hypot(width, rise);
      if (distance >= near) return;
      for (const { weights } of heads) {
        const weight = weights[row][column],
          counts = weight * (1 - distance / near) ** 2;
        if (weight >= lowest && counts > best) [found, best] = [{ row, column }, counts];
      }
    }),
  );
  if (!found) return null;
  const there = heads.map((head) => ({ ...head, weight: head.weights[found.row][found.column] }));
  return {
    ...found,
    heads: there.filter(({ weight }) => weight >= lowest).sort((one, other) => other.weight - one.weight),
  };
}

// All heads with a strong weight are named, and three in any case.
function describeLine(target, x, y) {
  if (!asLines()) return view.at(target, x, y);
  const line = lineAt(x, y);
  if (!line) return null;
  const { row, column, heads } = line;
  if (view.heads().length === 1) return describeWeight(heads[0], row, column);
  const strong = heads.filter(({ weight }) => weight >= STRONG).length;
  const named = heads.slice(0, Math.max(3, strong)).map(
    ({ head, weight }, number) =>
      `${number ? "," : ":"}${number && number % 3 === 0 ? "\n" : " "}head ${head} ${format(weight)}`, // three a line
  );
  return `layer ${chosen("layer")}, ${between(row, column)}${named.join("")}`;
}

document.getElementById("threshold").addEventListener("input", () => {
  document.querySelector("#tools output").textContent = threshold().toFixed(2);
  if (asLines()) lightLines();
  else view.threshold();
});

function lightLines() {
  view.light?.();
  for (const line of all("#vis line, #vis .qk-line-group path")) {
    if (typeof line.__data__ === "number") line.style.display = view.hides(line) ? "none" : "";
  }
}

const isFaint = (line) => line.__data__ < threshold();

if (Object.values(data.attention).some(({ words }) => words)) {
  tick(document.getElementById("tools"), "whole words", Boolean(data.whole), (whole) => {
    forget();
    showWords(whole);
    if (view.draw) view.draw();
    else fire(document.getElementById("layer"), "change"); // on which bertviz draws
    keep();
  }).id = "words";
}

// The heading names what is shown, and the picture that is saved says so, too (picture.js).
const heading = document.querySelector("h1"),
  shows = heading.textContent.replace(/^./, (first) => first.toLowerCase());
window.pictureState = () => {
  const filter = document.getElementById("filter"),
    said = view.state();
  if (filter && filter.value !== "all") said.push(`attention: ${filter.selectedOptions[0].text.replace("->", "→")}`);
  if (threshold() > 0) said.push(`weights below ${threshold().toFixed(2)} hidden`);
  return said
    .filter(Boolean)
    .map((text, at) => (at ? text : capital(text)))
    .join("; ");
};

// The keyboard: Tab comes to each group, arrow keys move in it, and Enter is a click. → from a token goes through its
// lines, strongest first. bertviz hears what the keyboard is at as if it were the pointer.

let walked = null; // the place of the line that was reached
let byKeyboard = false; // whether a key was pressed since the last click
document.addEventListener(
  "pointerdown",
  () => {
    byKeyboard = false;
  },
  true,
);
document.addEventListener(
  "keydown",
  () => {
    byKeyboard = true;
  },
  true,
);
const groupOf = (element) => view.groups.find(({ selector }) => element.matches?.(selector));

document.addEventListener("focusin", ({ target }) => {
  const group = groupOf(target);
  ring.hidden = !group || !byKeyboard;
  if (!group) return;
  for (const element of all(group.selector)) if (element.tabIndex === 0) element.tabIndex = -1;
  target.tabIndex = 0;
  walked = null;
  const text = view.describe(target);
  if (text) set(target, { "aria-label": text }); // products change with the query
  if (ring.hidden) return; // the pointer is there itself
  fire(target, "mouseover");
  const { left, bottom } = surround(target);
  showTip(text, left, bottom - 8);
});

document.addEventListener("focusout", ({ target }) => {
  if (!groupOf(target) || ring.hidden) return; // what a finger or pointer has just shown stays
  ring.hidden = true;
  tip.textContent = "";
  markLine(null);
  fire(target, "mouseout");
  for (const element of [target, target.closest("#left, #right")]) if (element) fire(element, "mouseleave");
});

function surround(element) {
  const { left, top, width, height, bottom } = element.getBoundingClientRect();
  const box = { left: left + scrollX - 3, top: top + scrollY - 3, width: width + 2, height: height + 2 };
  for (const [name, pixels] of Object.entries(box)) ring.style[name] = `${pixels}px`;
  return { left, bottom };
}

vis.addEventListener("scroll", () => {
  if (!ring.hidden) surround(document.activeElement);
});

document.addEventListener("keydown", (event) => {
  const { target, key, shiftKey } = event,
    group = groupOf(target);
  if (!group) return;
  const elements = all(group.selector),
    index = elements.indexOf(target),
    across = group.across?.() ?? 1;
  const sideways = { ArrowRight: 1, ArrowLeft: -1 }[key],
    upwards = { ArrowDown: across, ArrowUp: -across }[key];
  const next = upwards && group.towards?.(target, key);
  if (next !== undefined) goTo([next], 0, group);
  else if (sideways && group.from !== undefined) walk(target, index, group.from, sideways);
  else if (sideways || upwards) goTo(elements, index + (sideways ?? upwards), group);
  else if (key === "Enter" || key === " ") (view.press ?? fire)(target, shiftKey ? "dblclick" : "click");
  else return;
  event.preventDefault();
});

function goTo(elements, index, group) {
  if (!elements[index]) return;
  introduce(elements[index], index, group);
  elements[index].focus();
}

function walk(token, index, from, step) {
  const { right, bottom } = token.getBoundingClientRect();
  const lines = asLines() ? linesOf(index, from) : view.cellsOf(index);
  walked = Math.min(lines.length - 1, Math.max(-1, (walked ?? -1) + step));
  markLine(lines[walked]);
  if (walked >= 0) showTip(asLines() ? describe(lines[walked]) : lines[walked].text, right, bottom - 8);
}

// A token's lines that can be seen, strongest first.
function linesOf(index, from) {
  return [...vis.querySelectorAll(view.selector)]
    .filter((line) => (from ? view.ends(line).row : line.__index__) === index)
    .filter((line) => line.style.display !== "none" && +line.getAttribute("stroke-opacity") > 0)
    .sort((one, other) => other.__data__ - one.__data__);
}

function markLine(line) {
  for (const old of all("line.told")) old.classList.remove("told");
  if (line?.nodeType) line.classList.add("told");
  else view.mark?.(line);
}

// What bertviz has just drawn: names for screen readers, and a way in for the keyboard.

function equip() {
  for (const group of view.groups) {
    const elements = all(group.selector),
      named = group.role || group.from !== undefined;
    elements.slice(0, named ? Infinity : 1).forEach((element, index) => introduce(element, index, group));
    if (elements.length && !elements.some((element) => element.tabIndex === 0)) elements[0].tabIndex = 0;
  }
  view.equip?.();
  if (asLines()) lightLines();
  if (!vis.querySelector("svg[viewBox]")) fit(); // drawn again
}

// A name for screen readers; many numbers get theirs when the keyboard comes to them.
function introduce(element, index, { role = "img", from }) {
  if (element.hasAttribute("role")) return;
  const tokens = from === false ? panel().right_text : panel().left_text;
  set(element, { role, tabindex: -1, "aria-label": view.describe(element) ?? `${tokens[index]}, position ${index}` });
}

// Room for tokens longer than bertviz's columns. In a narrow window everything is smaller, as long as it can be read
// and touched; what is still too wide is scrolled.

let fitted = 0; // the width it was made for: smaller text is slightly wider or narrower, which must not begin it again

function fit() {
  const svg = vis.querySelector("svg");
  if (!svg || !window.config) return;
  heading.textContent = `${capital(view.state()[0])}: ${shows}`;
  if (!asLines() && view.arrange()) return;
  const boxes = all("#vis text:not([transform], .number)").map((text) => text.getBBox()),
    { top = 0, left: least = 0, zoom = 1 } = view;
  const left = Math.min(asLines() ? least : 0, ...boxes.map(({ x }) => x)),
    needed = Math.max(view.width, ...boxes.map(({ x, width }) => x + width)) - left + 8;
  if (Math.abs(needed + top - fitted) > 8 || !svg.hasAttribute("viewBox")) {
    fitted = needed + top;
    const { y, height: old } = svg.viewBox.baseVal ?? {};
    const height = (svg.hasAttribute("viewBox") ? y + old : parseFloat(svg.getAttribute("height"))) - top;
    set(svg, { viewBox: `${left} ${top} ${needed} ${height}`, width: needed, height });
    const [most, least] = [zoom, view.smallest()].map((times) => `${times * needed}px`);
    svg.style.cssText = `width: 100%; max-width: ${most}; min-width: ${least}; height: auto`;
  }
  root.classList.toggle("wide", vis.scrollWidth > vis.clientWidth);
  root.style.setProperty("--scale", svg.getScreenCTM()?.a ?? 1);
}

// `explore` replaces its frame whenever a text is typed or another view is chosen. What the reader has chosen is kept
// on the element around the frame, and in the address of a saved page, which can be passed on.

const keeper = window.frameElement?.closest(".keeps-choices");
const kept = readKept(); // layer, heads, threshold, the pinned token and what else a view keeps

function readKept() {
  if (keeper) return JSON.parse(keeper.dataset.choices ?? "{}");
  if (window.frameElement) return {};
  return Object.fromEntries(
    [...new URLSearchParams(location.hash.slice(1))].flatMap(([name, text]) => {
      try {
        return [[name, JSON.parse(text)]];
      } catch {
        return [];
      } // an address that was not made here
    }),
  );
}

function keep() {
  if (!window.config) return;
  Object.assign(kept, { threshold: threshold() || undefined, whole: data.whole || undefined }, view.keeps());
  if (keeper) keeper.dataset.choices = JSON.stringify(kept);
  else if (!window.frameElement && location.protocol !== "about:") {
    const some = Object.entries(kept)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, JSON.stringify(value)]);
    history.replaceState(null, "", `#${new URLSearchParams(some)}`);
  }
}

// Begin, when the numbers are unpacked.
function start(draw) {
  const { threshold: lowest = 0 } = kept,
    slider = document.getElementById("threshold");
  slider.value = lowest;
  slider.nextElementSibling.textContent = threshold().toFixed(2);
  if (kept.drawing && document.getElementById("drawing")) document.getElementById("drawing").value = kept.drawing;
  if (kept.whole && document.getElementById("words")) {
    document.getElementById("words").checked = true;
    showWords(true);
  }
  view.prepare(kept);
  draw();
  equip();
  view.begin?.(kept);
  new MutationObserver(equip).observe(vis, { childList: true });
  for (const type of ["click", "dblclick"]) document.addEventListener(type, equip);
  document.getElementById("drawing")?.addEventListener("change", () => view.draw());
  document.addEventListener("themechange", () => {
    if (view.draw) view.draw();
    else equip();
  });
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.body);
  for (const type of ["resize", "change", "click", "dblclick"]) addEventListener(type, fit);
  for (const type of ["click", "dblclick", "change", "input", "keyup"]) addEventListener(type, keep);
}

// Another part of a pair, and whole words, are other tokens: what was open is closed.
function forget() {
  Object.assign(config, { index: null, detail_layer: null, detail_head: null });
  view.forget?.();
}

document.getElementById("filter")?.addEventListener("change", forget);
