// Word, position and token type, their sum, and LayerNorm of it.

import { sum, unpack } from "../../numbers.js";

export const EPS = 1e-12; // BERT's

// The rows of each table.
export const tablesOf = ({ tables, size }) =>
  Object.fromEntries(Object.entries(tables).map(([key, text]) => [key, unpack(text, size)]));

// The first `size` numbers of three vectors, of their sum and of LayerNorm of it. Mean and deviation are of all numbers.
export function makeCompute(data) {
  const all = tablesOf(data);
  return ({ size, name, at, kind, trained }) => {
    const vectors = [all.word[name], all.position[at], all.type[kind]],
      few = (numbers) => numbers.slice(0, size),
      whole = vectors[0].map((_, i) => sum(vectors.map((vector) => vector[i])));
    const [mean, deviation] = spread(whole),
      root = Math.sqrt(deviation ** 2 + EPS);
    const gamma = trained ? all.weight[0] : whole.map(() => 1),
      beta = trained ? all.bias[0] : whole.map(() => 0);
    const normed = whole.map((number, i) => ((number - mean) / root) * gamma[i] + beta[i]);
    const [total, scale, shift, result] = [whole, gamma, beta, normed].map(few);
    return {
      parts: vectors.map(few),
      total,
      mean,
      deviation,
      root,
      gamma: scale,
      beta: shift,
      normed: result,
      moments: spread(normed),
    };
  };
}

function spread(values) {
  const mean = sum(values) / values.length;
  // biased, as in LayerNorm
  return [mean, Math.sqrt(sum(values.map((number) => (number - mean) ** 2)) / values.length)];
}
