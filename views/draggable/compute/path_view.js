// Where a word goes in an encoder, and where its vector comes from.

import { dot, sum, unpack } from "../../numbers.js";

export const GOES = "where it goes (measured)";
export const FROM = "where it comes from (an estimate)";

// Of a layer and a word, what each word gives it; null if that is not known.
export const splitOf = ({ names, flows }) => flows && unpack(flows, names.length);

// The share of the last vector of `word` that is in each lane at each depth: rows from the embedding on.
function sharesOf(split, N, L, word) {
  const words = Array.from({ length: N }, (_, i) => i);
  const rows = [words.map((_, i) => +(i === word))];
  for (let layer = L - 1; layer >= 0; layer--) {
    rows.unshift(words.map((_, j) => sum(words.map((_, i) => rows[0][i] * split[layer * N + i][j]))));
  }
  return rows;
}

// The share of each lane at each depth that was `source` at first.
export function reachOf(split, N, L, source) {
  const words = Array.from({ length: N }, (_, i) => i);
  const rows = [words.map((_, i) => +(i === source))];
  for (let layer = 0; layer < L; layer++) {
    rows.push(words.map((_, i) => dot(split[layer * N + i], rows[layer])));
  }
  return rows;
}

// What is drawn: of each depth and lane, a width from 0 to 1.
export function makeCompute(data) {
  const { names, layers: L } = data,
    measured = unpack(data.turns, names.length), // of a word taken away and a layer, the turn of each word
    split = splitOf(data);
  const turn = (word, layer, other) => measured[word * (L + 1) + layer][other];
  return ({ mode, word }) => {
    const widths =
      mode === FROM
        ? sharesOf(split, names.length, L, word)
        : Array.from({ length: L + 1 }, (_, layer) => names.map((_, other) => turn(word, layer, other)));
    const tests = names.map((_, other) => (mode === FROM ? turn(other, L, word) : turn(word, L, other)));
    return { widths, tests };
  };
}
