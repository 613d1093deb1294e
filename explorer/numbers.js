// Every number of the page, from a text's outputs. Nothing here draws: the tests compare it with torch, many states in
// one call.

import { bytesOf, float16 } from "../views/numbers.js";
import { followed, page, sizes } from "./state.js";

// Decode numbers from base64: float32 or, in `half`, float16
export function unpackNumbers(packed, half = {}) {
  const unpacked = (numbers, make) => Object.entries(numbers).map(([name, text]) => [name, make(bytesOf(text).buffer)]);
  const singles = (buffer) => new Float32Array(buffer),
    halves = (buffer) => Float32Array.from(new Uint16Array(buffer), float16);
  return Object.fromEntries([...unpacked(packed, singles), ...unpacked(half, halves)]);
}

// Encode numbers as float32 in base64, as figures read them
export function packed(numbers) {
  const bytes = new Uint8Array(Float32Array.from(numbers).buffer),
    letters = [];
  for (let i = 0; i < bytes.length; i += 8192) letters.push(String.fromCharCode(...bytes.subarray(i, i + 8192)));
  return btoa(letters.join(""));
}

// The outputs of a layer, or of one of its heads, for a text; by default, the text that is shown
export function ofLayer(name, layer, text = page.shown) {
  const size = text.tokens.length * sizes.H;
  return text[name].subarray(layer * size, (layer + 1) * size);
}

export function ofHead(name, layer = followed.layer, head = followed.head, text = page.shown) {
  const size = text.tokens.length * (name === "attentions" ? text.tokens.length : sizes.D),
    start = (layer * sizes.A + head) * size;
  return text[name].subarray(start, start + size);
}

// The words of a text, as a figure groups its tokens: for each token the number of its word, and the words
export function wordsOf(tokens) {
  const ids = [],
    names = [];
  for (const token of tokens) {
    if (token.startsWith("##") && names.length) names[names.length - 1] += token.slice(2);
    else names.push(token);
    ids.push(names.length - 1);
  }
  return { ids: [ids], names: [names] };
}

// What to follow first in a text: the largest weight from a word to another one that is not its neighbour, if there is
// one. Many heads look at a neighbour, and most at [CLS].
export function startOf({ tokens, attentions }) {
  const size = tokens.length,
    isWord = tokens.map((token) => /^[^[]*[\p{L}\p{N}]/u.test(token));
  let best = {},
    most = 0;
  attentions.forEach((weight, at) => {
    const key = at % size,
      row = Math.floor(at / size),
      token = row % size;
    if (!isWord[key] || !isWord[token] || key === token) return;
    const worth = weight + (Math.abs(key - token) > 1);
    if (worth <= most) return;
    const head = Math.floor(row / size);
    most = worth;
    best = { token, layer: Math.floor(head / sizes.A), head: head % sizes.A };
  });
  return best;
}

// rows · columnsᵀ, or rows · matrix with `across`, as in notebook 03
function product(left, right, inner, across = false) {
  const rows = left.length / inner,
    columns = right.length / inner;
  return Float32Array.from({ length: rows * columns }, (_, cell) => {
    const row = Math.floor(cell / columns),
      column = cell % columns;
    let sum = 0;
    for (let i = 0; i < inner; i++)
      sum += left[row * inner + i] * right[across ? i * columns + column : column * inner + i];
    return sum;
  });
}

export const scoresOf = (...head) =>
  product(ofHead("queries", ...head), ofHead("keys", ...head), sizes.D).map((score) => score / Math.sqrt(sizes.D));
export const contextOf = (...head) =>
  product(ofHead("attentions", ...head), ofHead("values", ...head), page.shown.tokens.length, true);

// A token's row of the rows of a head or layer
export const rowOf = (all, row, size) => all.subarray(row * size, (row + 1) * size);

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

// The four rows of a token's embedding: of the word, of its position, of the first or second text, and their sum
export function rowsOfEmbedding(token) {
  const [word, place] = [0, 1].map((i) => rowOf(ofLayer("embedded", i), token, sizes.H)),
    kind = rowOf(page.types, page.shown.types[token], sizes.H);
  return [word, place, kind, word.map((value, i) => value + place[i] + kind[i])];
}

// How far a token has turned: the cosines between its embedding and its vector after each layer
export function turned(token) {
  const vector = (depth) => rowOf(ofLayer("hidden_states", depth), token, sizes.H);
  return Array.from({ length: sizes.L + 1 }, (_, depth) => cosine(vector(0), vector(depth)));
}
