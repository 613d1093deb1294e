// Where the words of a sentence view are, on a line or in a column, and the ribbons between them.

import { format, FROM_THE_RIGHT, sum } from "../numbers.js";
import { add, set } from "../elements.js";
import { figure, widthNow } from "./figure.js";
import { ribbonPaths } from "./ribbons.js";
import { degrees, drawing, FULL, nameOf, short, shown, sizes, state, turnsOf } from "./sentence_texts.js";

const MAX_LETTERS = 20,
  MIN_LETTERS = 14, // pixels
  THIN = 6; // pixels of a ribbon whose outline would hide its filling

// Pieces and punctuation are nearer to what is before them.
function isNear(i) {
  const [before, name] = [i - 1, i].map((at) => nameOf(shown()[0], drawing.slots[at] ?? []) ?? "");
  return i > 0 && (/^(##.*|[.,;:!?)%\u2019\u2026'-]+)$/.test(name) || /^[(\u2019'-]+$/.test(before));
}

// The slots from left to right: the browser orders the words of a line, in any mixture of scripts.
function readingOrder(names) {
  if (!names.some((name) => FROM_THE_RIGHT.test(name))) return names.map((_, i) => i);
  const isSpecial = (name) => /^(\[\w+\]|<.+>)$/.test(name);
  const first = names.find((name) => !isSpecial(name) && /\p{L}/u.test(name)),
    dir = FROM_THE_RIGHT.test(first) ? "rtl" : "ltr";
  const line = add(figure, "p", { dir, style: "position: absolute; visibility: hidden; white-space: nowrap" });
  const lefts = names
    .map((name) => {
      line.append(name.startsWith("##") ? "" : " ");
      return add(line, isSpecial(name) ? "bdi" : "span", {}, name.replace(/^##/, "") || "\u00a0");
    })
    .map((element) => element.getBoundingClientRect().left);
  line.remove();
  return names.map((_, i) => i).sort((a, b) => lefts[a] - lefts[b]);
}

// Where everything is: on one line if the sentence fits, in a column if not.
export function measure() {
  const { slots, words } = drawing,
    width = widthNow(),
    two = state.both,
    texts = two ? shown() : sizes.map((_, text) => text);
  const stacked = slots.map((columns) => two && new Set(shown().map((text) => nameOf(text, columns))).size > 1);
  const lengths = (size, most = 16) =>
    words.map(({ name }, i) => {
      set(name, { "font-size": size });
      return Math.max(
        ...texts.map((text) => {
          name.textContent = short(nameOf(text, slots[i]), most);
          return name.getComputedTextLength();
        }),
      );
    });
  const order = readingOrder(slots.map((columns) => nameOf(shown()[0], columns)));
  const gapBefore = order.map((i, at) =>
    at && isNear(Math.max(i, order[at - 1])) && Math.abs(i - order[at - 1]) === 1 ? 0.16 : 0.5,
  );
  const extra = turnsOf() ? 17 : 0; // a line of degrees below the weights
  for (let size = MAX_LETTERS; size >= MIN_LETTERS; size--) {
    const wide = lengths(size),
      gaps = gapBefore.map((gap) => gap * size),
      total = sum(wide) + sum(gaps);
    if (total > width) continue;
    const rise = Math.max(70, Math.min(two ? 106 : 120, 0.14 * total)),
      at = [];
    let left = (width - total - gaps[0]) / 2;
    order.forEach((i, step) => {
      at[i] = left + gaps[step] + wide[i] / 2;
      left += gaps[step] + wide[i];
    });
    const band = (stacked.includes(true) ? 2.8 : 1.5) * size,
      low = rise + 4 + 22 + band + 24;
    const height = two ? low + rise : rise + 100 + extra;
    return { extra, size, width, wide, at, rise, order, stacked, band, low, height, whole: 48, row: true, most: 16 };
  }
  const most = two ? 12 : 16,
    wide = lengths(15, most),
    order1 = slots.map((_, i) => i);
  const steps = stacked.map((is) => (is ? 46 : 27)),
    at = steps.map((step, i) => sum(steps.slice(0, i)) + step / 2 + 2);
  const half = Math.max(...wide) / 2 + 44;
  const rise = two ? Math.min(0.5 * width - half - 2, 170) : Math.round(0.24 * Math.min(width, 520));
  const bars = rise + Math.max(...wide) + 24,
    low = rise + 2 * half;
  return {
    size: 15,
    width,
    wide,
    at,
    rise,
    order: order1,
    stacked,
    low,
    half,
    bars,
    whole: 38,
    row: false,
    most,
    height: sum(steps) + 4,
    extra,
    longest: Math.min(width, 640) - bars - 40 - 3 * extra,
  };
}

// Draw ribbons from a place on the line or in the column, and shares as bars, on their way to the `goal`, whose numbers
// are written. `fold` goes from −1 to 1 where the ribbons of the newer side come from the other one; `turned` are the
// degrees that fill the ribbons, if they do.
export function put(token, from, moving, goal, fold, theirs, turned = null) {
  const [shares, others] = moving,
    { words, ribbons, cores, outlines, parts, tags, place } = drawing,
    { at, rise, order, low } = place,
    two = state.both,
    edges = [rise + 4, low],
    newer = two ? 1 : 0;
  const high = two || turned || !place.row ? rise - 0.4 * place.whole : rise;
  const trace = (each, side) =>
    ribbonPaths(each, token, { ...place, from, high }, (along, up) => {
      const turn = side === newer ? fold : 1,
        edge = edges[side] + ((1 - turn) / 2) * (edges[1 - side] - edges[side]);
      const across = edge + turn * (side ? up : -up);
      return place.row ? `${along} ${across}` : `${across} ${along}`;
    });
  [shares, others].forEach((each, side) => {
    trace(each, side).forEach(({ d, breadth }, i) => set(ribbons[side][i], { d, "stroke-width": breadth }));
    const rimmed = turned && !side ? each : theirs[side],
      rims = rimmed && trace(rimmed, side);
    outlines[side].forEach((path, i) => {
      set(path, { d: rims && rimmed[i] > 0.005 ? rims[i].outline : "" });
      set(path, { class: `outline${rims?.[i].breadth < THIN ? " thin" : ""}${i === token ? " asks" : ""}` });
    });
  });
  trace(shares, 0).forEach(({ d, breadth }, i) => {
    const filled = turned ? Math.min(breadth, (place.whole * turned[i]) / FULL) : 0;
    set(cores[i], { d: filled ? d : "", "stroke-width": filled });
  });
  ribbons[1].forEach((ribbon) => {
    ribbon.style.display = two ? "" : "none";
  });
  [...parts, ...tags].forEach((element) => {
    element.style.display = two ? "none" : "";
  });
  const taken = [],
    most = (i) => Math.max(goal[0][i], goal[1][i]);
  for (const i of shares.map((_, i) => i).sort((a, b) => most(b) - most(a))) {
    const { number, more } = words[i],
      room = !place.row || taken.every((other) => Math.abs(other - at[i]) > 34);
    number.textContent = format(goal[0][i]);
    more.textContent = two ? format(goal[1][i]) : turned ? degrees(turnsOf()[drawing.slots[i][0]]) : "";
    if (place.row) putOnLine(i);
    else if (two) putBetween(i);
    else putInColumn(i, shares[i]);
    if (room) taken.push(at[i]);
    const isShown = room && (most(i) >= 0.005 || !(two || place.row));
    [number, more].forEach((element) => {
      element.style.visibility = isShown ? "" : "hidden";
    });
  }
  if (!two) putBars(order, shares, goal[0]);
}

// A word on the line, with its numbers below it or, of two texts, above and below it.
function putOnLine(i) {
  const { size, at, wide, rise, band, stacked, extra } = drawing.place,
    { room, box, name, second, number, more, line } = drawing.words[i],
    two = state.both;
  const x = at[i],
    y = rise + (two ? 26 : 8),
    high = two ? band : 1.5 * size,
    end = y + high,
    top = two ? y - 20 : y;
  const first = y + (two && !stacked[i] ? (high - 1.5 * size) / 2 : 0) + 1.08 * size; // where letters stand
  set(box, { x: x - wide[i] / 2 - 3, y, width: wide[i] + 6, height: high });
  set(room, { x: x - wide[i] / 2 - 0.2 * size, y: top, width: wide[i] + 0.4 * size, height: end + 22 - top });
  [
    [name, first],
    [second, first + 1.3 * size],
    [number, two ? y - 5 : end + 18],
    [more, end + (two ? 15 : 18 + extra)],
  ].forEach(([text, y]) => {
    set(text, { x, y, "text-anchor": "middle" });
  });
  set(line, { x1: x - wide[i] / 2, x2: x + wide[i] / 2, y1: end + 1, y2: end + 1 });
}

// A word in the column, with its number at the end of its bar.
function putInColumn(i, share) {
  const { at, wide, rise, width, bars, longest } = drawing.place,
    { room, box, name, number, more, line } = drawing.words[i],
    y = at[i];
  set(box, { x: rise + 6, y: y - 12, width: bars - rise - 12, height: 24 });
  set(room, { x: rise + 6, y: y - 13, width: width - rise - 6, height: 26 });
  set(name, { x: rise + 12, y: y + 5, "text-anchor": "start" });
  set(number, { x: bars + longest * share + 6, y: y + 5, "text-anchor": "start" });
  set(more, { x: width - 4, y: y + 5, "text-anchor": "end" });
  set(line, { x1: rise + 12, x2: rise + 12 + wide[i], y1: y + 10, y2: y + 10 });
}

// A word in the column between the ribbons of two texts, with a number on each side.
function putBetween(i) {
  const { at, rise, half, low, stacked } = drawing.place,
    { room, box, name, second, number, more } = drawing.words[i];
  const y = at[i],
    high = stacked[i] ? 43 : 24,
    middle = rise + half;
  set(box, { x: rise + 42, y: y - high / 2, width: 2 * half - 84, height: high });
  set(room, { x: rise, y: y - high / 2 - 1, width: 2 * half, height: high + 2 });
  set(name, { x: middle, y: y + (stacked[i] ? -5 : 5), "text-anchor": "middle" });
  set(second, { x: middle, y: y + 15, "text-anchor": "middle" });
  set(number, { x: rise + 8, y: y + 5, "text-anchor": "start" });
  set(more, { x: low - 8, y: y + 5, "text-anchor": "end" });
}

// One line of 1, divided into the shares; in a column, a bar for each.
function putBars(order, shares, goal) {
  const { words, parts, tags, place } = drawing,
    { rise, width, at } = place;
  let left = 0;
  for (const i of order) {
    const name = words[i].name.textContent,
      share = shares[i];
    (place.row ? [`${name} ${format(goal[i])}`, name, ""] : [""]).find((text) => {
      // the longest that fits
      tags[i].textContent = text;
      return !text || tags[i].getComputedTextLength() <= width * share - 10;
    });
    set(tags[i], { x: left + (width * share) / 2, y: rise + 82 + place.extra });
    set(
      parts[i],
      place.row
        ? { x: left + 0.5, y: rise + 65 + place.extra, width: Math.max(0, width * share - 1), height: 24 }
        : { x: place.bars, y: at[i] - 6, width: Math.max(1, place.longest * share), height: 12 },
    );
    left += width * share;
  }
}
