// Of a head, model or neuron view, whose own file says in a record what differs: unpacks the attention, and keeps what the
// reader has chosen.

import { root } from "./frame.js";
import { capital, inflate, tokenName } from "./numbers.js";
import { add, by } from "./elements.js";
import { data, figure, redraw, remember, remembered, tick } from "./draggable/figure.js";
import { wholeWords } from "./words.js";

export const vis = by("vis");
export const tools = by("tools");
const tip = add(document.body, "div", { id: "tip", role: "status" });
export const chosen = (id) => by(id)?.value;
export const panel = () => data.attention[chosen("filter") ?? data.default_filter];

// Numbers travel as ten-thousandths, compressed: 2n for n, 2n - 1 for -n, the low bytes of all of them first.
async function decompress({ shape, data: packed }) {
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
  /** @param {number[]} sizes */
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
    for (const name of ["attn", "queries", "keys"]) if (panel[name]) panel[name] = await decompress(panel[name]);
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

// In words and numbers

export const isMark = (token) => data.marks.includes(token);

export const between = (row, column) =>
  `${tokenName(panel().left_text, row)} → ${tokenName(panel().right_text, column)}`;

export function showTip(text, x, y) {
  tip.textContent = text ?? "";
  if (!text) return;
  const room = root.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(x + 12, room)) + scrollX}px`;
  tip.style.top = `${y + 16 + scrollY}px`;
}

// `at` says what is under the pointer.
document.addEventListener("mousemove", ({ target, clientX: x, clientY: y }) => {
  showTip(ready && vis.contains(target) ? record.at?.(target, x, y) : null, x, y);
});

// The heading names what is shown, and the picture that is saved says so, too (picture.js).
const heading = document.querySelector("h1"),
  shows = heading.textContent.replace(/^./, (first) => first.toLowerCase());
window.pictureState = () => {
  const filter = by("filter"),
    said = shownByBertviz() ? ["as bertviz draws it"] : record.state();
  if (filter && filter.value !== "all") said.push(`attention: ${filter.selectedOptions[0].text.replace("->", "→")}`);
  return said.filter(Boolean).map(capital).join("; ");
};
const help = by("help").firstChild,
  usual = help.textContent;
// The words around a drawing belong to the state that is drawn. In bertviz's own, what is chosen is known to it alone.
const name = () => {
  const words = shownByBertviz() ? { title: `As bertviz draws it: ${shows}` } : record.words();
  heading.textContent = words.title;
  help.textContent = words.help ? `${words.help} ` : usual;
};

// bertviz's own drawing, in a frame of its own, in which bertviz's code runs as it is.

const MOST_LINES = 50000; // a browser draws more of them for minutes
const frame = add(figure, "iframe", { id: "bertviz", title: "bertviz's drawing" });
const shownByBertviz = () => root.classList.contains("theirs");
async function showBertviz(on) {
  root.classList.toggle("theirs", on);
  if (!on) return record.draw();
  name();
  const selects = data.controls.map(([id, label]) => `${label}: <select id="${id}"></select> `).join("");
  const loaded = new Promise((done) => frame.addEventListener("load", done, { once: true }));
  frame.srcdoc = `<!doctype html><body style="font-family: Helvetica, Arial, sans-serif; background: white">
    <div id="own">${selects}${by("filter")?.outerHTML ?? ""}<div id="vis"></div></div>`;
  await loaded;
  const { contentWindow: inside, contentDocument: page } = frame;
  inside.PYTHON_PARAMS = inside.bertviz_params = { ...data, ...record.first(), root_div_id: "own" };
  inside.require = { config() {} };
  page.body.append(Object.assign(page.createElement("script"), { text: await bertviz }));
  new inside.ResizeObserver(() => {
    frame.style.height = `${page.documentElement.scrollHeight}px`;
  }).observe(page.body);
}

// `explore` replaces its frame whenever a text is typed or another view is chosen. What the reader has chosen is kept
// on the element around the frame, and in the address of a saved page (figure.js).

const keeper = window.frameElement?.closest(".keeps-choices");
let ready = false,
  record = null, // of the view
  bertviz = null; // its code

export function keep() {
  if (!ready) return;
  const now = { whole: data.whole || undefined, filter: chosen("filter"), ...record.keeps() };
  Object.assign(now, { bertviz: shownByBertviz() || undefined });
  if (keeper) keeper.dataset.choices = JSON.stringify({ ...now, filter: undefined, pinned: now.pinned });
  else remember(now);
}

// Another part of a pair, and whole words, are other tokens.
function change() {
  record.forget?.();
  record.draw();
  name();
  keep();
}

// Begin, when the numbers are unpacked. `code` is bertviz's, compressed.
export async function start(view, code) {
  record = view;
  await unpackPanels();
  bertviz = inflate(code).then((bytes) => new TextDecoder().decode(bytes));
  const kept = keeper ? JSON.parse(keeper.dataset.choices ?? "{}") : remembered,
    filter = by("filter");
  const words = Object.values(pieces).some(({ words }) => words);
  if (words && kept.whole) showWords(true);
  if (kept.filter && filter) filter.value = kept.filter;
  const whole = words && tick(tools, "whole words", Boolean(data.whole), (on) => [showWords(on), change()]);
  if (whole) whole.id = "words";
  ready = true;
  record.begin(kept);
  if (record.drawn().flat(Infinity).length <= MOST_LINES) {
    tick(record.more ?? tools, "as bertviz draws it", Boolean(kept.bertviz), showBertviz).id = "theirs";
    if (kept.bertviz) showBertviz(true);
  }
  record.draw();
  name();
  filter?.addEventListener("change", change);
  document.addEventListener("themechange", () => record.draw());
  redraw(vis, () => record.arrange?.());
  for (const type of ["click", "change", "keyup"]) addEventListener(type, () => [name(), keep()]);
}
