// Shared by all views and figures: data, moves, controls and handles.

import { fitFrame, keepTheme, root } from "../frame.js";
import { arrowhead, format, inflate } from "../numbers.js";
import { add, by, onArrows, set } from "../elements.js";
import "../picture.js";

// The explorer brings data of its own.
export const data = window.frameElement?.figure ?? JSON.parse(by("data").textContent);
export const figure = by("figure") ?? by("view");

// Every change of numbers is a move: `draw` shows each state from the numbers that `owner` shows now to `goal`.
// The last state comes immediately while a reader drags, in a photograph and under reduced motion.
const MOVE = 400; // milliseconds
// By owner: the numbers that it shows, and its move.
export const shownBy = new WeakMap();
export const moves = new Map();
export const animated = () => !window.still && !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
let dragging = false,
  nested = false;

for (const kind of ["pointermove", "pointerup", "pointercancel"]) {
  addEventListener(
    kind,
    ({ buttons }) => {
      dragging = kind === "pointermove" && buttons > 0;
      if (dragging) advance(Infinity); // what the press began ends before the drag
    },
    true,
  );
}

export function glide(owner, goal, draw, from = shownBy.get(owner), time = MOVE) {
  const put = (numbers) => {
    const outer = nested;
    nested = true; // numbers that follow from these have no moves of their own
    shownBy.set(owner, numbers);
    draw(numbers);
    nested = outer;
  };
  const same = from?.length === goal.length && from.every((number, i) => number === goal[i]);
  const possible = from?.length === goal.length && [...from, ...goal].every(Number.isFinite);
  moves.delete(owner);
  if (same || !possible || nested || dragging || !animated()) return put(goal);
  if (!moves.size) requestAnimationFrame(advance);
  moves.set(owner, { from, goal, put, time, begun: performance.now() });
  root.classList.add("moving");
}

export function advance(now) {
  for (const [owner, { from, goal, put, time, begun }] of moves) {
    const share = Math.max(0, Math.min(1, (now - begun) / time)),
      eased = share * share * (3 - 2 * share);
    if (share === 1) moves.delete(owner);
    put(share === 1 ? goal : from.map((number, i) => number + eased * (goal[i] - number)));
  }
  if (moves.size && now < Infinity) requestAnimationFrame(advance);
  root.classList.toggle("moving", moves.size > 0);
}

// Draw new elements, and let each glide from where the last one with the same data-key was.
export function rearrange(parent, draw) {
  const all = () =>
    [...parent.querySelectorAll("[data-key]")].map((element) => [element, element.getBoundingClientRect()]);
  const before = new Map(all().map(([{ dataset }, box]) => [dataset.key, box]));
  draw();
  const moved = all().flatMap(([element, to]) => {
    const from = before.get(element.dataset.key),
      x = from?.x - to.x,
      y = from?.y - to.y;
    return from && Math.hypot(x, y) > 1 ? [[element, x, y]] : [];
  });
  const put = ([left]) =>
    moved.forEach(([{ style }, x, y]) => {
      style.transform = left ? `translate(${left * x}px, ${left * y}px)` : "";
    });
  glide(parent, [0], put, [1]);
}

// Show a number, rounded, and keep it unrounded in data-value. `also` draws what else depends on it.
export function show(element, number, digits = 2, also = (_now) => {}) {
  element.dataset.value = number;
  glide(element, [number], ([now]) => {
    element.textContent = format(now, digits);
    also(now);
  });
}

// Name an element by what it shows, then by what that means: speech control finds it by the words on the screen.
export function nameShown(element, shown, meaning) {
  element.setAttribute("aria-label", `${shown} ${meaning}`);
}

// Show a share from 0 to 1 as the length of a bar.
export function stretch(bar, share, from) {
  glide(
    bar,
    [share],
    ([now]) => {
      bar.style.width = `${100 * now}%`;
    },
    from,
  );
}

// Add a table with these columns and a row for each name. Returns each row's cells, in the order of the columns.
export function table(parent, columns, names) {
  const all = add(add(parent, "div", { class: "scroll" }), "table");
  const head = add(add(all, "thead"), "tr"),
    body = add(all, "tbody");
  columns.forEach((text) => (text ? add(head, "th", { scope: "col" }, text) : add(head, "td")));
  return names.map((name) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return columns.slice(1).map(() => add(row, "td"));
  });
}

// Run compressed code: page.py calls this in the page of a head, model or neuron view.
async function run(packed) {
  add(document.body, "script", {}, new TextDecoder().decode(await inflate(packed)));
}

// Say what is chosen; `rests` marks what a reader may do instead, which no picture shows.
export function say(text, rests = false) {
  const element = by("say");
  element.textContent = text;
  element.classList.toggle("rests", rests);
}

// Say in one sentence, below the figure, what a reader may do, and behind "?" what else there is to know.
export function explain(text, more = "") {
  const help = by("help");
  help.textContent = text;
  if (!more) return;
  help.append(" ");
  const all = add(help, "details");
  add(all, "summary", { "aria-label": "more help" }, "?");
  all.append(more);
}

// What a reader has chosen is kept in the address of a saved page, from which "Copy link" copies it.
export const remembered = Object.fromEntries(
  [...new URLSearchParams(window.frameElement ? "" : location.hash.slice(1))].flatMap(([name, text]) => {
    try {
      return [[name, JSON.parse(text)]];
    } catch {
      return []; // an address that was not made here
    }
  }),
);
export function remember(choices) {
  if (window.frameElement || location.protocol === "about:") return;
  const some = Object.entries(choices).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, JSON.stringify(value)]],
  );
  history.replaceState(null, "", `#${new URLSearchParams(some)}`);
}

// Of a figure, its controls, what is pressed in it, its arrows and `held`, its state, in one place for all figures.
const KINDS_OF_CONTROLS = ["textarea", "[type=radio], [type=checkbox]", "[type=range], [type=number]"];
KINDS_OF_CONTROLS.push("[aria-checked], [aria-pressed]", "select", ".handle");
export function keepChoices(held = null, again = () => {}) {
  const controls = () => [...figure.querySelectorAll(KINDS_OF_CONTROLS.join())];
  const read = (one) => {
    if (one.matches(".handle")) return [+one.dataset.x, +one.dataset.y];
    if (one.matches("[type=radio], [type=checkbox]")) return one.checked;
    return one.matches("button, g") ? (one.ariaChecked ?? one.ariaPressed) === "true" : one.value;
  };
  const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const first = controls().map(read),
    begun = JSON.stringify(held);
  for (const kind of remembered.controls ? KINDS_OF_CONTROLS : []) {
    for (const [at, value] of remembered.controls) {
      const one = controls()[at];
      if (!one?.matches(kind) || isSame(read(one), value)) continue;
      if (one.matches(".handle")) one.moved(value);
      else if (typeof value === "boolean")
        one.matches("g") ? one.dispatchEvent(new MouseEvent("click", { bubbles: true })) : one.click();
      else {
        one.value = value;
        for (const type of ["input", "change"]) one.dispatchEvent(new Event(type, { bubbles: true }));
      }
    }
  }
  if (held && remembered.held) {
    Object.assign(held, remembered.held);
    again();
  }
  const keep = () => {
    const now = controls().map((one, at) => [at, read(one)]);
    const changed = now
      .filter(([at, value]) => value !== false || first[at] === true)
      .filter(([at, value]) => !isSame(value, first[at]));
    const own = JSON.stringify(held) === begun ? undefined : held;
    remember({ controls: changed.length ? changed : undefined, held: own });
  };
  for (const type of ["click", "change", "input", "keyup", "pointerup"]) addEventListener(type, () => setTimeout(keep));
}

// Controls. Each calls `changed` with the new choice.

export function slider(
  parent,
  name,
  { min, max, step = 1, value, digits = 0, shown = (number, _input) => format(number, digits) },
  changed,
) {
  const label = add(parent, "label", {}, name.trim());
  const input = add(label, "input", { type: "range", min, max, step, value });
  const output = add(label, "output");
  input.update = (number = +input.value) => {
    input.value = number;
    output.textContent = shown(number, input);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.update();
  input.addEventListener("input", () => {
    input.update();
    changed(+input.value);
  });
  return input;
}

export function tick(parent, name, on, changed) {
  const label = add(parent, "label"),
    input = add(label, "input", { type: "checkbox" });
  input.checked = on;
  label.append(name);
  input.addEventListener("change", () => changed(input.checked));
  return input;
}

// Let the reader choose one of several names.
export function choice(parent, title, names, chosen, changed) {
  const group = add(parent, "fieldset");
  add(group, "legend", {}, title);
  return names.map((name) => {
    const label = add(group, "label"),
      input = add(label, "input", { type: "radio", name: title, value: name });
    input.checked = name === chosen;
    label.append(name);
    input.addEventListener("change", () => changed(name));
    return input;
  });
}

// A box for the reader's own text.
export function typed(parent, name, text, { rows = 1, most }, changed) {
  const label = add(parent, "label", { class: "typed" }, name);
  const input = add(label, "textarea", { rows, maxlength: most, spellcheck: "false" }, text);
  input.addEventListener("input", () => changed(input.value));
  return input;
}

// Steps 0 to `last`: Play, a button back, a slider and a button on. `last(number, at)` changes their number and goes to
// one. A photograph shows the last step.
const BEAT = 1000; // milliseconds from step to step while they play
export function steps(controls, name, last, changed) {
  const parent = add(controls, "div", { class: "steps" }),
    button = (text) => add(parent, "button", { type: "button" }, text);
  const play = button(""),
    back = button("\u2190 back"),
    on = button("next \u2192");
  const input = slider(
    parent,
    ` ${name}`,
    { min: 0, max: last, value: 0, shown: (at, { max }) => `${at} of ${max}` },
    leave,
  );
  let beat = 0;
  function go(at) {
    input.update(at);
    const end = at >= +input.max;
    if (end) rest();
    [back.disabled, on.disabled, play.disabled] = [at <= 0, end, +input.max < 1];
    changed(at);
  }
  // Playing ends at the last step, or when the reader takes over.
  function rest() {
    clearInterval(beat);
    beat = 0;
    play.textContent = "\u25b6 play";
  }
  function leave(at) {
    rest();
    go(at);
  }
  play.addEventListener("click", () => {
    if (beat) return rest();
    const begin = +input.value < +input.max ? +input.value + 1 : 0;
    play.textContent = "\u2759\u2759 pause";
    beat = setInterval(() => {
      if (figure.isConnected) go(+input.value + 1);
      else rest();
    }, BEAT);
    go(begin);
  });
  rest();
  [play.disabled, back.disabled, on.disabled] = [last < 1, true, last <= 0];
  back.addEventListener("click", () => leave(+input.value - 1));
  on.addEventListener("click", () => leave(+input.value + 1));
  if (window.still) setTimeout(() => go(+input.max));
  return {
    go: leave,
    at: () => +input.value,
    last(number, at = 0) {
      input.max = number;
      leave(at);
    },
  };
}

// How wide an SVG is that has the width of the figure.
export const widthNow = () => Math.max(300, figure.clientWidth);

// Draw again when the size changes, or, of an SVG drawn for a width, the width; as long as the page exists.
export function redraw(element, draw, drawnFor = null) {
  new ResizeObserver(() => {
    if (!figure.isConnected || !figure.clientWidth) return;
    if (!drawnFor || drawnFor.viewBox.baseVal.width !== widthNow()) draw();
  }).observe(element);
}

// Put labels where there is room: each begins at its own place, and they push each other, and are pushed by `points`,
// within `edge` of the middle (one number, or one across and one upwards). `labels` are { element, x, y }, where x and
// y are the middle of the text; `points` are [x, y, half a width, half a height], by default about as large as a small
// letter.
export function makeRoom(labels, points, size, edge) {
  const [across, up] = [edge].flat().length > 1 ? edge : [edge, edge];
  const boxes = labels
    .filter(({ element }) => element.textContent)
    .map(({ element, x, y }) => {
      const w = element.getComputedTextLength() / 2 + 0.2 * size,
        h = 0.66 * size;
      return { element, x, y, w, h, home: [x, y] };
    });
  const fixed = points.map(([x, y, w = 0.3 * size, h = w]) => ({ x, y, w, h }));
  for (let turn = 0; turn < 120; turn++) {
    for (const [i, one] of boxes.entries()) {
      for (const other of [...boxes.slice(i + 1), ...fixed]) {
        const dx = one.x - other.x,
          dy = one.y - other.y;
        const right = one.w + other.w - Math.abs(dx),
          down = one.h + other.h - Math.abs(dy);
        if (right <= 0 || down <= 0) continue;
        const both = other.home ? 0.5 : 1,
          [x, y] = right < down ? [Math.sign(dx) * right, 0] : [0, (Math.sign(dy) || 1) * down];
        one.x += both * x;
        one.y += both * y;
        if (other.home) [other.x, other.y] = [other.x - both * x, other.y - both * y];
      }
      one.x = Math.max(one.w - across, Math.min(across - one.w, one.x));
      one.y = Math.max(one.h - up, Math.min(up - one.h, one.y));
    }
  }
  for (const { element, x, y } of boxes) set(element, { x, y: -y + 0.35 * size, "font-size": size });
}

// An arrow's head, to drag or to move with the arrow keys by `step` from where it `is`. `moved` gets [x, y], with y
// upwards; `handle.put([x, y])` draws it there.
export function handle(svg, name, colour, { size, step, is, moved }) {
  const all = add(svg, "g", { class: "handle", tabindex: 0, role: "slider", "aria-label": name, "aria-valuenow": 0 });
  add(all, "circle", { r: 2 * size, fill: "transparent" }); // large enough for a finger
  const head = add(all, "path", { d: arrowhead(size), fill: colour, class: "dot" });
  all.moved = moved;
  all.put = ([x, y]) => {
    set(all, {
      transform: `translate(${x} ${-y})`,
      "data-x": x,
      "data-y": y,
      "aria-valuenow": x,
      "aria-valuetext": `${format(x, 1)}, ${format(y, 1)}`,
    });
    head.setAttribute("transform", `rotate(${(-180 * Math.atan2(y, x)) / Math.PI})`);
  };
  const round = (number) => Math.round(number / step) * step;
  const move = (x, y) => moved([round(x), round(y)]);
  onDrag(all, (event) => {
    const { x, y } = pointIn(svg, event);
    move(x, -y);
  });
  onArrows(all, (right, down) => move(is()[0] + right * step, is()[1] - down * step));
  return all;
}

// Where the pointer is in an SVG's own units.
export const pointIn = (svg, { clientX, clientY }) =>
  new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());

// Let the pointer drag an element of an SVG.
export function onDrag(element, moved) {
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    element.focus();
    event.preventDefault();
  });
  // A finger on it must not scroll the page. (touch-action has no effect on a <g>, which has no box.)
  element.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  element.addEventListener("pointermove", (event) => {
    if (element.hasPointerCapture(event.pointerId)) moved(event);
  });
}

// Follow the theme of the surrounding page, and the height of the figure.
keepTheme();
new ResizeObserver(() => fitFrame()).observe(document.body);
