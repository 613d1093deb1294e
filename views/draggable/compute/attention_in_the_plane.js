// Attention in the plane, from the numbers of a state, which may be between two states.

import { dot, softmax } from "../../numbers.js";

const pairs = (numbers) => Array.from({ length: numbers.length / 2 }, (_, i) => numbers.slice(2 * i, 2 * i + 2));

// The divisor of the products, the query, the keys and what they carry, in a row.
export function flatten({ values: apart, asking }, { query, keys, values, scaled, simple }) {
  const asks = simple ? keys[asking] : query,
    carried = simple || !apart ? keys : values;
  return [scaled ? Math.SQRT2 : 1, ...[asks, ...keys, ...carried].flat()];
}
// Scores, weights and the average of the values.
export function attend({ names }, numbers) {
  const [divisor, ...rest] = numbers,
    [asks, ...others] = pairs(rest),
    offers = others.slice(0, names.length),
    carried = others.slice(names.length);
  const products = offers.map((key) => dot(asks, key)),
    scores = products.map((product) => product / divisor);
  const weights = softmax(scores),
    mean = [0, 1].map((at) =>
      dot(
        weights,
        carried.map((value) => value[at]),
      ),
    );
  return { asks, offers, carried, products, scores, powers: scores.map(Math.exp), weights, mean };
}

export const makeCompute = (data) => (state) => attend(data, flatten(data, state));
