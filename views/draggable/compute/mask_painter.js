// Attention with equal scores under a mask.

import { dot, softmax } from "../../numbers.js";

// All scores are 0, and -infinity where the mask is closed.
export function compute({ open, values }) {
  const weights = open.map((row) => softmax(row.map((on) => (on ? 0 : -Infinity))));
  return { weights, averages: weights.map((row) => dot(row, values)) };
}

export const makeCompute = () => compute;
