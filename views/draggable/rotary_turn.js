// A query and a key, each turned by its position times an angle: their product depends on the distance only.

import { root } from "../frame.js";
import { clamp, covered, format, shaft } from "../numbers.js";
import { add, by, letterSize, set } from "../elements.js";
import {
  advance,
  animated,
  data,
  explain,
  figure,
  glide,
  handle,
  keepChoices,
  makeRoom,
  redraw,
  say,
  show,
  slider,
  table,
  tick,
} from "./figure.js";
import { makeCompute, productAt, turn } from "./compute/rotary_turn.js";

explain(
  "Drag a position above or below the line (or use the arrow keys), then tick “move both together”; " +
    "drag the arrows' heads to try others.",
);

const { names, base, pairs } = data,
  N = names.length;
/** @type {any[]} */
const both = ["query", "key"].map((name, i) => ({
  name,
  vector: data[name],
  at: data.at[i],
  colour: `var(--${name})`,
}));
const [query, key] = both;
let angle,
  together = false; // angle: of one position
const longest = Math.max(...both.map(({ vector }) => Math.hypot(...vector))) || 1;
const most = 1.1 * longest,
  unit = 0.3 * longest,
  edge = 4.7 * unit,
  size = 0.26 * unit;

root.classList.add("high");

// Angles are written as the rounded angle of one position makes them, so that what is written adds up.
const degrees = (by) => (180 * by) / Math.PI;
const each = (by = angle) => +degrees(by).toPrecision(3),
  places = () => `${each()}`.split(".")[1]?.length ?? 0;
const inDegrees = (number) => `${format(number, places())}°`;
// The angle from key to query at position 0, rounded like the others, and the part of a full turn that an angle leaves.
const atZero = () => +degrees(between(key.vector, query.vector)).toFixed(places());
const within = (number) => number - 360 * Math.round(number / 360);

const compute = makeCompute(data);
const state = () => ({ angle, at: both.map(({ at }) => at), vectors: both.map(({ vector }) => vector) });
const many = (last, make) => Array.from({ length: last + 1 }, (_, i) => make(i / last, i));
const line = (parent, stroke, width, d = "") => add(parent, "path", { stroke, "stroke-width": width, d, fill: "none" });
const along = (element, points) => element.setAttribute("d", `M${points.map(([x, y]) => `${x} ${-y}`).join("L")}`);
const write = (parent, size, text, x = 0, y = 0) => add(parent, "text", { x, y, "font-size": size }, text);

// A line of words: the query's place is chosen above it, the key's below.
const strip = add(figure, "div", { class: "strip", style: `--places: ${N}` });
function choose(one, corners) {
  one.input = slider(
    strip,
    one.name,
    { min: 0, max: N - 1, value: one.at, shown: (at) => `${at} ${names[at]}` },
    (at) => move(one, at - one.at),
  );
  one.input.parentNode.style = `color: ${one.colour}; --pin: ${corners}`;
}
choose(query, "50% 50% 0 50%");
const cells = add(strip, "div", { class: "cells" });
names.forEach((name, at) => {
  const cell = add(cells, "span", { title: name }, at);
  if (name) add(cell, "b", {}, name);
});
choose(key, "0 50% 50% 50%");
const controls = add(figure, "div", { class: "controls" });
tick(controls, "move both together", false, (on) => {
  together = on;
  if (on && document.readyState !== "loading") play(); // and not when the address brings back what was chosen
});
slider(
  controls,
  "angle per position ",
  {
    min: 0,
    max: pairs - 1,
    value: data.pair,
    shown: (pair) => {
      angle = base ** (-pair / pairs);
      return `${each()}° (pair ${pair})`;
    },
  },
  () => draw(),
);
const written = add(figure, "p", { style: "margin: 0; font-size: var(--title)" });
const [asks, offers, product, apart] = [query.colour, key.colour, "", "var(--average)"].map((colour) =>
  add(written, "b", { style: `color: ${colour}` }),
);
asks.after(" · ");
offers.after(" = ");
product.after("; ");

// The arrows: faint before turning, bold after it; a spiral between them, as it may go round twice.
const row = add(figure, "div", { class: "row" }),
  left = add(row, "div", { style: "max-width: 400px" });
const plane = add(left, "svg", {
  role: "group",
  class: "plane",
  style: "width: 100%; max-width: 400px",
  "aria-label": "arrows before and after turning",
});
// The plane begins with its upper half if all arrows are in it, and grows when one leaves it.
const cross = line(plane, "var(--line)", 0.03 * unit);
let below = 0.3 * edge;
function makeHigher(heads) {
  if (heads.some(([, y]) => y < -0.1 * edge)) below = edge;
  set(plane, { viewBox: [-edge, -edge, 2 * edge, edge + below] });
  cross.setAttribute("d", `M0 ${-edge}V${below}M${-edge} 0H${edge}`);
}
makeHigher([]);
const wedge = add(plane, "path", { fill: "var(--average)", opacity: 0.2 });
for (const one of both) {
  [one.faint, one.way, one.bold] = [0.1, 0.05, 0.12].map((width) => line(plane, one.colour, width * unit));
  one.faint.style.opacity = 0.4;
  const moved = (point) => {
    const shorter = Math.min(1, most / Math.hypot(...point));
    one.vector = turn(
      point.map((number) => shorter * number),
      -one.at * angle,
    );
    draw();
  };
  const is = () => turn(one.vector, one.at * angle);
  one.head = handle(plane, one.name, one.colour, { size, step: unit / 10, is, moved });
}
const texts = many(4, () => write(plane, 0)); // over the arrows

// Labels beyond the heads, and the angle in its wedge, where there is room.
function label(all, heads) {
  const high = letterSize(plane);
  const placed = all.map(([[x, y], colour, text], i) => {
    const element = texts[i],
      long = Math.hypot(x, y) || 1;
    element.textContent = text;
    set(element, { "font-size": high, style: `fill: ${colour}` });
    const wide = i < 4 ? element.getComputedTextLength() / 2 + high : 0;
    return { element, x: x + (x / long) * wide, y: y + (y / long) * (i < 4 ? 1.3 * high : 0) };
  });
  makeRoom(
    placed,
    heads.map((tip) => covered(tip, size)),
    high,
    edge,
  );
}

// Their product at each distance, blue above zero and orange below.
const side = add(row, "div"),
  chart = add(side, "svg", {
    viewBox: "0 0 400 234",
    role: "img",
    class: "product",
    style: "width: 100%; max-width: 430px",
    "aria-label": "product by distance",
  });
const across = (distance) => 200 + (185 * distance) / (N - 1),
  up = (number) => (90 * number) / most ** 2 - 96;
line(chart, "var(--line)", 1, "M8 96H392M200 6V186");
const curve = line(chart, "var(--soft)", 1.5);
write(chart, 13, "product", 232, 14);
const dots = many(2 * N - 2, (_, i) => {
  const far = i + 1 - N,
    cx = across(far);
  if (far % Math.ceil(N / 3) === 0) write(chart, 13, format(far, 0), cx, 204);
  return add(chart, "circle", { cx });
});
write(chart, 13, "distance: position of the query − position of the key", 200, 222);
const turns = table(side, ["", "turned by position × angle"], ["query", "key", "difference"]);
side.append(by("say"));

const STAYS = "Both arrows turned by the same angle. The angle between them stays, and so does their product.";
function move(one, step) {
  const moved = together ? both : [one],
    places = moved.map(({ at }) => at);
  step = Math.max(-Math.min(...places), Math.min(N - 1 - Math.max(...places), step));
  if (!step) return one.input.update(one.at);
  moved.forEach((two) => {
    two.at += step;
  });
  draw(together ? STAYS : "The distance changed, so the angle between the arrows changed, and with it their product.");
}

// Both go on by three positions and back, once: by themselves when the figure is first seen, and when the switch is
// pressed, which under reduced motion moves them by one position. Any press or key ends it where it began.
function play() {
  const home = both.map(({ at }) => at),
    room = clamp(N - 1 - Math.max(...home), 0, 3) || -Math.min(3, ...home);
  const put = ([way]) => {
    const by = room * (1 - Math.abs(1 - way)),
      places = home.map((at) => at + by);
    both.forEach((one, i) => {
      one.at = Math.round(places[i]);
    });
    draw(STAYS);
    picture([angle, ...places, ...query.vector, ...key.vector]);
  };
  if (animated()) glide(play, [2], put, [0], 3000);
  else move(query, Math.sign(room));
}
const seen = new IntersectionObserver(([{ isIntersecting }]) => {
  if (isIntersecting && animated()) [seen.disconnect(), play()];
});
seen.observe(figure);
for (const type of ["pointerdown", "keydown"])
  addEventListener(type, () => [seen.disconnect(), advance(Infinity)], true);

// The angle from an arrow to another, from −π to π.
const between = ([a, b], [c, d]) => Math.atan2(a * d - b * c, a * c + b * d);

let said;
function draw(sentence = "The product depends on the angle between the two arrows.") {
  said = sentence;
  const distance = query.at - key.at;
  both.forEach((one, i) => {
    one.input.update(one.at);
    [asks, offers][i].textContent = `${one.name} at ${one.at}`;
  });
  apart.textContent = `distance ${format(distance, 0)}`;
  [query.at, key.at, distance].forEach((at, i) => {
    turns[i][0].textContent = `${format(at, 0)} × ${each()}° = ${inDegrees(at * each())}`;
  });
  glide(both, [angle, query.at, key.at, ...query.vector, ...key.vector], picture);
  say(sentence);
}

// Both arrows at these positions, which are between two tokens while they move, and their product at each distance.
function picture([by, ...numbers]) {
  const at = numbers.slice(0, 2),
    begin = [numbers.slice(2, 4), numbers.slice(4)],
    distance = at[0] - at[1];
  const { turned, product: now, products } = compute({ angle: by, at, vectors: begin });
  const [end, start] = turned.map(([x, y]) => Math.atan2(y, x)),
    open = between(turned[1], turned[0]);
  makeHigher([...begin, ...turned]);
  both.forEach((one, i) => {
    const far = at[i] * by,
      to = [end, start][i];
    one.head.put(turned[i]);
    along(one.faint, [[0, 0], begin[i]]);
    one.bold.setAttribute("d", shaft(turned[i], size));
    along(
      one.way,
      many(100, (share) => turn([(1.4 - 0.5 * i + 0.05 * share * far) * unit, 0], to - far + share * far)),
    );
  });
  along(wedge, [[0, 0], ...many(32, (share) => turn([2.4 * unit, 0], start + share * open))]);
  const free = both.map((_, i) => Math.hypot(turned[i][0] - begin[i][0], turned[i][1] - begin[i][1]) > unit);
  const angleShown = inDegrees(Math.abs(within(atZero() + distance * each(by))));
  label(
    [
      ...both.map(({ name }, i) => [begin[i], "var(--soft)", free[i] ? `${name} at 0` : ""]),
      ...both.map((one, i) => [turned[i], one.colour, `${one.name} at ${one.at}`]),
      [turn([2.9 * unit, 0], start + open / 2), "var(--average)", angleShown],
    ],
    turned,
  );
  show(product, now);
  along(
    curve,
    many(400, (share) => (2 * share - 1) * (N - 1)).map((far) => [across(far), up(productAt(far, by, begin))]),
  );
  dots.forEach((circle, i) => {
    const far = i + 1 - N,
      number = products[i],
      near = Math.max(0, 1 - Math.abs(far - distance));
    set(circle, {
      cy: -up(number),
      r: 3.5 + 4.5 * near,
      fill: `var(--${number < 0 ? "below" : "above"})`,
      "data-value": number,
    });
  });
}

draw();
redraw(plane, () => draw(said));
keepChoices();
