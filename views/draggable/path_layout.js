// Where the lanes of a path view are. No page is needed.

import { bandPath, sum } from "../numbers.js";
import { ribbonsBetween } from "../flow.js";

const THINNEST_FLOW = 0.15; // pixels: there are as many as pairs of words, in each layer

// The height of each lane, and the places of the layers. A turn grows with the square of an angle, so a lane is as wide
// as its root; shares add up, and are drawn as they are.
export function placeLanes(widths, isFrom, width) {
  const narrow = width < 520,
    scale = isFrom ? (narrow ? 110 : 150) : narrow ? 40 : 60,
    drawn = isFrom ? widths : widths.map((row) => row.map(Math.sqrt)),
    high = widths[0].map((_, i) => Math.max(24, Math.min(1, Math.max(...drawn.map((row) => row[i]))) * scale + 8));
  const middle = high.map((each, i) => 22 + sum(high.slice(0, i)) + each / 2),
    name = narrow ? 74 : 104,
    left = name + (isFrom ? (narrow ? 112 : 190) : 14),
    right = width - (isFrom ? (narrow ? 50 : 86) : 44),
    depth = widths.length - 1;
  const x = widths.map((_, layer) => left + ((right - left) * layer) / depth);
  return { narrow, scale, drawn, high, middle, name, left, right, x, low: 26 + sum(high) };
}

// Of each word, one lane along all layers.
export function lanesOf({ drawn, middle, x, scale }) {
  return middle.map((y, i) => {
    const ends = drawn.map((row) => [y - (row[i] * scale) / 2, row[i] * scale]);
    return ends
      .slice(1)
      .map((end, layer) => bandPath(x[layer], x[layer + 1], ends[layer], end))
      .join("");
  });
}

// Between lanes of `nodes`, wide from 0 to 1: what word j gives to word i in each layer, and of that a part.
export function flowsOf(nodes, given, parts, { middle, x, scale }) {
  const edge = (layer) => middle.map((y, i) => y - (nodes[layer][i] * scale) / 2);
  return nodes.slice(1).flatMap((_, layer) => {
    const wide = middle.map((_, j) => middle.map((_, i) => given(layer, i, j) * parts[layer][j] * scale));
    return ribbonsBetween(wide, edge(layer), edge(layer + 1), x[layer] + 3, x[layer + 1] - 3, THINNEST_FLOW);
  });
}
