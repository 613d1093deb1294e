// Word, position and token type, their sum, and LayerNorm of it.

import { sum, unpack } from "../../numbers.js";

export const EPS = 1e-12; // BERT's

// The rows of each table.
export const tablesOf = ({ tables, size }) =>
  Object.fromEntries(Object.entries(tables).map(([key, text]) => [key, unpack(text, size)]));

// The three vectors, their sum, and LayerNorm of it.
export function makeCompute(data) {
  const all = tablesOf(data);
  return ({ size, name, at, kind, trained }) => {
    const parts = [all.word[name], all.position[at], all.type[kind]].map((row) => row.slice(0, size)),
      total = parts[0].map((_, i) => sum(parts.map((part) => part[i])));
    const [mean, deviation] = spread(total),
      root = Math.sqrt(deviation ** 2 + EPS);
    const gamma = total.map((_, i) => (trained ? all.weight[0][i] : 1)),
      beta = total.map((_, i) => (trained ? all.bias[0][i] : 0));
    const normed = total.map((number, i) => ((number - mean) / root) * gamma[i] + beta[i]);
    return { parts, total, mean, deviation, root, gamma, beta, normed, moments: spread(normed) };
  };
}

export function spread(values) {
  const mean = sum(values) / values.length;
  // biased, as in LayerNorm
  return [mean, Math.sqrt(sum(values.map((number) => (number - mean) ** 2)) / values.length)];
}
