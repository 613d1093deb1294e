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

// The steps from a row's scores to its attention weights
function softmaxTerms(scores) {
  const powers = scores.map(Math.exp),
    total = powers.reduce((sum, power) => sum + power, 0);
  return { powers, total, shares: powers.map((power) => power / total) };
}

// The steps from query and key of two tokens to one attention weight
function stepsToWeight({ token, key, layer, head }) {
  const query = rowOf(ofHead("queries", layer, head), token, D),
    asked = rowOf(ofHead("keys", layer, head), key, D),
    count = shown.tokens.length;
  const products = query.map((value, i) => value * asked[i]),
    dot = products.reduce((sum, value) => sum + value, 0);
  const scores = [...rowOf(scoresOf(layer, head), token, count)],
    terms = softmaxTerms(scores);
  return {
    query,
    asked,
    products,
    dot,
    scores,
    terms,
    score: dot / Math.sqrt(D),
    power: terms.powers[key],
    total: terms.total,
    share: terms.shares[key],
  };
}

const NOTCHES = 20; // steps of the slider on either side of √D

const divisorAt = (notch) => Math.sqrt(D) + (notch / NOTCHES) * (notch < 0 ? Math.sqrt(D) - 1 : Math.sqrt(D));
const entropyOf = (shares) => -shares.reduce((sum, share) => sum + (share > 0 ? share * Math.log2(share) : 0), 0);

// Softmax of a row of products q · k after a division. The largest is subtracted first, so that the powers of e stay
// finite.
function divided(products, divisor) {
  const largest = Math.max(...products);
  return softmaxTerms(products.map((value) => (value - largest) / divisor)).shares;
}

// q · k of a token with every token, in one head
const productsOf = ({ token, layer, head }) => [
  ...product(rowOf(ofHead("queries", layer, head), token, D), ofHead("keys", layer, head), D),
];

// The head whose largest weight changes most for a token between the two ends of the slider
function mostScaled(token) {
  const change = Array.from({ length: L * A }, (_, i) => {
    const products = productsOf({ token, layer: Math.floor(i / A), head: i % A });
    const [sharp, flat] = [-NOTCHES, NOTCHES].map((notch) => Math.max(...divided(products, divisorAt(notch))));
    return sharp - flat;
  });
  return change.indexOf(Math.max(...change));
}

// The four rows of a token's embedding: of the word, of its position, of the first or second text, and their sum
function rowsOfEmbedding(token) {
  const [word, place] = [0, 1].map((i) => rowOf(ofLayer("embedded", i), token, H)),
    kind = rowOf(TYPES, shown.types[token], H);
  return [word, place, kind, word.map((value, i) => value + place[i] + kind[i])];
}

// Lengths of a token's vectors: as it comes in, what attention adds, between, what the network adds, and as it goes out
function lengthsOf(token, layer) {
  const count = shown.tokens.length,
    after = rowOf(ofLayer("hidden_states", layer + 1), token, H);
  return [...[0, 1, 2, 3].map((i) => shown.lengths[(layer * 4 + i) * count + token]), Math.hypot(...after)];
}

// How long the vector is that attention adds, relative to the vector that comes in
function addedBy(token, layer) {
  const [stream, added] = lengthsOf(token, layer);
  return added / stream;
}

// The share of units above zero: of a token, and the mean of the others
function activeUnits(token, layer) {
  const count = shown.tokens.length,
    all = rowOf(shown.active, layer, count);
  return { own: all[token], others: (all.reduce((sum, share) => sum + share, 0) - all[token]) / (count - 1) };
}

// A token's row of attention weights, averaged over a layer's heads
function meanWeights(token, layer) {
  const count = shown.tokens.length,
    mean = new Float32Array(count);
  for (let head = 0; head < A; head++)
    rowOf(ofHead("attentions", layer, head), token, count).forEach((weight, i) => {
      mean[i] += weight / A;
    });
  return mean;
}

// How far a token has turned: the cosines between its embedding and its vector after each layer
function turned(token) {
  const vector = (depth) => rowOf(ofLayer("hidden_states", depth), token, H);
  return Array.from({ length: L + 1 }, (_, depth) => cosine(vector(0), vector(depth)));
}

// The mean of some tokens' last vectors; over all tokens, it is the sentence vector of notebook 09
function meanVector(text, rows = text.tokens.map((_, i) => i)) {
  const last = ofLayer("hidden_states", L, text);
  return Float32Array.from(
    { length: H },
    (_, i) => rows.reduce((sum, row) => sum + last[row * H + i], 0) / rows.length,
  );
}

// The shares of token vectors (S, H) and (T, H) whose means are a and b, like `shares_of_cosine` in notebook 09
function sharesOf(one, other, a, b) {
  const length = (vector) => Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  const whole = (one.length / H) * (other.length / H) * length(a) * length(b);
  return product(one, other, H).map((value) => value / whole);
}

// Align two texts with the fewest tokens changed, inserted or removed. Each slot has the positions in one text (a) and
// in the other (b) that correspond. Adjacent changed tokens are paired one to one, or form one slot if their counts
// differ.
function align(a, b) {
  const cost = Array.from({ length: a.length + 1 }, (_, i) =>
    Array.from({ length: b.length + 1 }, (__, j) => a.length - i + b.length - j),
  );
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      cost[i][j] =
        a[i] === b[j] ? cost[i + 1][j + 1] : 1 + Math.min(cost[i + 1][j + 1], cost[i + 1][j], cost[i][j + 1]);
  }
  const slots = [];
  let left = [],
    right = [];
  const close = () => {
    if (left.length === right.length) slots.push(...left.map((i, n) => ({ a: [i], b: [right[n]] })));
    else slots.push({ a: left, b: right });
    [left, right] = [[], []];
  };
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      close();
      slots.push({ a: [i++], b: [j++], same: true });
    } else {
      const after = cost[i][j] - 1,
        replaced = cost[i + 1]?.[j + 1] === after,
        out = !replaced && cost[i + 1]?.[j] === after;
      if (replaced || out) left.push(i++);
      if (!out) right.push(j++);
    }
  }
  close();
  return slots;
}

// One head's attention weights between slots: summed over the tokens that are looked at, averaged over those that look
function betweenSlots(text, layer, head, sides) {
  const weights = ofHead("attentions", layer, head, text),
    count = text.tokens.length;
  return sides.map((from) =>
    sides.map((to) =>
      from.length
        ? from.reduce((all, i) => all + to.reduce((sum, j) => sum + weights[i * count + j], 0), 0) / from.length
        : NaN,
    ),
  );
}

const largestOf = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0);
const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// Compare a text with the kept one; if they share too few tokens, return { apart }, a message
function compareTexts(kept, text) {
  const slots = align(kept.tokens, text.tokens),
    longer = Math.max(kept.tokens.length, text.tokens.length);
  const same = slots.filter((slot) => slot.same).length,
    excerpt = (one) => `“${one.tokens.slice(1, -1).join(" ")}”`;
  if (same === longer) return { equal: true };
  if (same < longer / 2)
    return {
      apart:
        `${excerpt(text)} shares ${same} of ${longer} tokens with the kept sentence, [CLS] and [SEP] among them. ` +
        "That is too few to compare token by token: change a word or two.",
    };
  const sides = (side) => slots.map((slot) => slot[side]);
  const heads = Array.from({ length: L * A }, (_, i) => {
    const [before, after] = [
      [kept, "a"],
      [text, "b"],
    ].map(([one, side]) => betweenSlots(one, Math.floor(i / A), i % A, sides(side)));
    const difference = after.map((row, r) => row.map((value, c) => value - before[r][c]));
    return {
      before,
      after,
      difference,
      moved: difference.map((row) => row.reduce((sum, value) => sum + Math.abs(value), 0) / 2),
    };
  });
  const names = slots.map(({ a, b, same: equal }) => {
    const [old, now] = [
      [kept, a],
      [text, b],
    ].map(([one, places]) => places.map((i) => one.tokens[i]).join(" "));
    return equal ? old : `${old || "–"} → ${now || "–"}`;
  });
  const change = slots.flatMap((slot, i) => (slot.same ? [] : [names[i]])).join(", ");
  return {
    slots,
    heads,
    names,
    change,
    cosineAt: (slot) => cosine(meanVector(kept, slots[slot].a), meanVector(text, slots[slot].b)),
  };
}

// The numbers for the followed token, given its slot
function measure(compared, slot, head) {
  const everywhere = compared.heads.map(({ moved }) => moved[slot]);
  const rows = compared.heads.flatMap(({ moved }) => moved.filter((value) => !Number.isNaN(value)));
  return { here: everywhere[head], heads: meanOf(everywhere), all: meanOf(rows), cosine: compared.cosineAt(slot) };
}

// The choice nearest to a number, by ratio or by difference
const nearest = (choices, value, apart) =>
  choices.map(([, of]) => apart(of, value)).reduce((best, far, i, all) => (far < all[best] ? i : best), 0);
const byRatio = (a, b) => Math.abs(Math.log(a / b)),
  byDifference = (a, b) => Math.abs(a - b);
