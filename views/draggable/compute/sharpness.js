// Softmax of scores times a factor, and how far the weight of one answers to a nudge.

import { softmax } from "../../numbers.js";

export const NUDGE = 0.5;

// The scores times the factor, their softmax, and the nudged weight at both ends of the nudge.
export const makeCompute =
  ({ size }) =>
  ({ at, scores, nudged }) => {
    const scaled = scores.map((score) => score * size ** at),
      nudge = (by) => softmax(scaled.map((score, i) => (i === nudged ? score + by : score)));
    return { scaled, weights: softmax(scaled), ends: [nudge(-NUDGE)[nudged], nudge(NUDGE)[nudged]] };
  };
