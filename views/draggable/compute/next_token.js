// What can be drawn from logits by temperature, top-k and top-p, and the darts that hit each token.

import { softmax } from "../../numbers.js";

// The likeliest first.
export const orderOf = (logits) => logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);

// From the logits to what can be drawn, and the token that each dart hits: a number from 0 to 1 is a place on the
// ruler.
export function makeCompute({ logits }) {
  const order = orderOf(logits);
  return ({ temperature, k, p, darts }) => {
    const scaled = logits.map((logit) => logit / temperature),
      given = softmax(scaled);
    const least = scaled[order[k - 1]]; // ties with the k-th stay, as in transformers
    const kept = scaled.map((score) => (score < least ? -Infinity : score)),
      parts = softmax(kept);
    // From the least likely up, tokens go as long as all that have gone make up 1 − p at most. One always stays.
    let gone = 0;
    for (const i of p === 1 ? [] : order.slice(1).reverse()) {
      gone += parts[i];
      if (gone <= 1 - p) kept[i] = -Infinity;
    }
    const shares = softmax(kept),
      drawn = shares.map(() => 0);
    for (const dart of darts) drawn[hit(order, shares, dart)]++;
    return { logits, given, parts, shares, drawn };
  };
}

// The token in whose piece of the ruler a dart lands.
function hit(order, shares, dart) {
  for (const i of order) {
    dart -= shares[i];
    if (dart < 0) return i;
  }
  return order[0]; // rounding
}

// Mulberry32 (Tommy Ettinger 2017, public domain), as bryc wrote it in JavaScript: random numbers from 0 to 1, the same
// for the same seed.
export function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
