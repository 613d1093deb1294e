// Every number of the page, from a text's outputs. Nothing here draws: the tests compare it with torch, many states in
// one call.

// Decode numbers from base64: float32 or, in `half`, float16
function unpackNumbers(packed, half = {}) {
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
  const unpack = (numbers, make) => Object.entries(numbers).map(([name, text]) => [name, make(bytes(text))]);
  const singles = (buffer) => new Float32Array(buffer),
    halves = (buffer) => Float32Array.from(new Uint16Array(buffer), fromHalf);
  return Object.fromEntries([...unpack(packed, singles), ...unpack(half, halves)]);
}

// Encode numbers as float32 in base64, as figures read them
function packed(numbers) {
  const bytes = new Uint8Array(Float32Array.from(numbers).buffer),
    letters = [];
  for (let i = 0; i < bytes.length; i += 8192) letters.push(String.fromCharCode(...bytes.subarray(i, i + 8192)));
  return btoa(letters.join(""));
}

function fromHalf(bits) {
  const sign = bits >> 15 ? -1 : 1,
    exponent = (bits >> 10) & 31,
    fraction = (bits & 1023) / 1024;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

// The outputs of a layer, or of one of its heads, for a text; by default, the text that is shown
function ofLayer(name, layer, text = shown) {
  const size = text.tokens.length * H;
  return text[name].subarray(layer * size, (layer + 1) * size);
}

function ofHead(name, layer = followed.layer, head = followed.head, text = shown) {
  const size = text.tokens.length * (name === "attentions" ? text.tokens.length : D),
    start = (layer * A + head) * size;
  return text[name].subarray(start, start + size);
}

// The words of a text, as a figure groups its tokens: for each token the number of its word, and the words
function wordsOf(tokens) {
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
function startOf({ tokens, attentions }) {
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
    best = { token, layer: Math.floor(head / A), head: head % A };
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

const scoresOf = (...head) =>
  product(ofHead("queries", ...head), ofHead("keys", ...head), D).map((score) => score / Math.sqrt(D));
const contextOf = (...head) =>
  product(ofHead("attentions", ...head), ofHead("values", ...head), shown.tokens.length, true);

// A token's row of the rows of a head or layer
const rowOf = (all, row, size) => all.subarray(row * size, (row + 1) * size);

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

// The four rows of a token's embedding: of the word, of its position, of the first or second text, and their sum
function rowsOfEmbedding(token) {
  const [word, place] = [0, 1].map((i) => rowOf(ofLayer("embedded", i), token, H)),
    kind = rowOf(TYPES, shown.types[token], H);
  return [word, place, kind, word.map((value, i) => value + place[i] + kind[i])];
}

// How far a token has turned: the cosines between its embedding and its vector after each layer
function turned(token) {
  const vector = (depth) => rowOf(ofLayer("hidden_states", depth), token, H);
  return Array.from({ length: L + 1 }, (_, depth) => cosine(vector(0), vector(depth)));
}
