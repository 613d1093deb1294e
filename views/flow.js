// Where the words of a head view are, and its ribbons, also those of a path view. No page is needed.

import { bandPath, sum } from "./numbers.js";

const THINNEST = 0.02; // pixels of a ribbon that is drawn

// A band from x0 to x1 with a top and a height at each end. Where it is nowhere as wide as a pixel, what a screen shows
// of it would begin in mid-air: it is a line of one pixel, `faint` by the band's width.
function ribbon(x0, x1, [a, high], [b, low]) {
  const wide = Math.max(high, low);
  if (wide >= 1) return { d: bandPath(x0, x1, [a, high], [b, low]), faint: null };
  const c = (x1 - x0) / 2,
    [from, to] = [a + high / 2, b + low / 2];
  return { d: `M${x0} ${from}C${x0 + c} ${from} ${x1 - c} ${to} ${x1} ${to}`, faint: wide };
}

// The attributes of a ribbon, for `set`.
export const drawnAs = (kind, { d, faint }) =>
  faint === null ? { class: kind, d } : { class: `${kind} faint`, d, style: `--wide: ${faint.toFixed(3)}` };

// A unit of attention is `unit` high on both sides, and no two words are nearer than 24 pixels, which a finger needs.
export function placeFlow(weights) {
  const [S, T] = [weights.length, weights[0].length],
    rows = Math.max(S, T),
    [pitch, unit] = rows <= 9 ? [44, 22] : rows <= 16 ? [30, 15] : [28, 8],
    high = rows * pitch;
  const gives = weights.map(sum),
    gets = weights[0].map((_, j) => sum(weights.map((row) => row[j])));
  const tops = gives.map((number, i) => ((i + 0.5) * high) / S - (number * unit) / 2),
    spare = (high - unit * sum(gets)) / T,
    bases = gets.map((_, j) => spare * (j + 0.5) + unit * sum(gets.slice(0, j)));
  return { unit, high, gives, gets, tops, bases };
}

// The ribbons from i to j, `wide[i][j]` pixels wide, between the edges x0 and x1. On both sides each begins where the one
// before it ends.
export function ribbonsBetween(wide, tops, bases, x0, x1, thinnest = THINNEST) {
  const [out, into] = [[...tops], [...bases]],
    all = [];
  wide.forEach((row, i) =>
    row.forEach((high, j) => {
      if (high > thinnest) all.push({ i, j, ...ribbon(x0, x1, [out[i], high], [into[j], high]) });
      out[i] += high;
      into[j] += high;
    }),
  );
  return all;
}

// How much of a head's attention goes to words or, in a text of words or marks alone, to the token that gets most.
export function shareOf(weights, marks) {
  const gets = marks.map((_, j) => sum(weights.map((row) => row[j]))),
    hasBoth = marks.includes(true) && marks.includes(false);
  return (hasBoth ? sum(gets.filter((_, j) => !marks[j])) : Math.max(...gets)) / weights.length;
}
