// Where the squares of a model view and its enlarged head are, and what a head looks at. No page is needed.

import { clamp } from "./numbers.js";

export const AXIS = 38; // pixels to the left of and above the squares
const SIDE = { least: 24, most: 60, high: 440 }; // pixels from one square to the next; how high all layers may be
const CELL = { least: 15, most: 26 }; // pixels of a weight of the enlarged head
const GAP = 24; // between the squares and the enlarged head
const EDGE = 12; // of the enlarged head, on its right
const HALF = 0.5; // a larger share gives a head its kind

// The enlarged head has words `beside` and `above` its weights. It is beside the squares if both have room there and
// `mayBeBeside`, and below them if not.
export function placeHeads({ layers, heads }, { columns, beside }, room, mayBeBeside = true) {
  const wide = (cell) => beside + columns * cell + EDGE,
    cellIn = (width) => clamp(Math.floor((width - beside - EDGE) / columns), CELL.least, CELL.most),
    least = AXIS + heads * SIDE.least;
  const isBeside = mayBeBeside && least + GAP + wide(20) <= room,
    cell = cellIn(isBeside ? room - GAP - least : room),
    width = wide(cell),
    squares = isBeside ? room - GAP - width : room;
  const high = clamp(SIDE.high / layers, 36, SIDE.most),
    pitch = Math.max(SIDE.least, Math.min(high, (squares - AXIS) / heads));
  const x = isBeside ? AXIS + heads * pitch + GAP : 0;
  return { isBeside, cell, width, pitch, x };
}

// What the tokens of a head give, on average, to themselves, to a neighbour or to one fixed token: the largest of these.
// `marks` says which columns are no words, and `alike` whether both sides have the same tokens.
export function kindOf(weights, marks, alike) {
  const columns = marks.map((mark, column) => ({ name: mark ? "mark" : "word", column, sum: 0, count: 0 }));
  const steps = Object.entries(alike ? { itself: 0, before: -1, after: 1 } : {}).map(([name, step]) => ({
    name,
    step,
    sum: 0,
    count: 0,
  }));
  weights.forEach((row, from) => {
    for (const each of columns) if (!alike || each.column !== from) (each.sum += row[each.column]), each.count++;
    for (const each of steps) if (from + each.step in row) (each.sum += row[from + each.step]), each.count++;
  });
  const shares = [...steps, ...columns].map((each) => ({ ...each, share: each.sum / Math.max(1, each.count) }));
  const largest = shares.reduce((best, each) => (each.share > best.share ? each : best));
  return largest.share > HALF ? largest : { ...largest, name: "spread", instead: largest.name };
}
