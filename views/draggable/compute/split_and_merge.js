// How (S, H) is split into heads and merged again: where each number is after each step.

export const range = (count) => Array.from({ length: count }, (_, i) => i);
export const numbersOf = (shape, sizes) => [...shape].map((letter) => sizes[letter]);

// The steps: a name, its shape, whether it swaps the first two dimensions, and what readers see.
const BEGIN = {
  name: "queries",
  shape: "SH",
  tell: (sizes) =>
    "Each row is the query of one token, made from its whole vector: " +
    `H = A · D = ${sizes.H} numbers. Each blue is the part of one head, ${sizes.D} of them.`,
};
const SPLIT = {
  name: "cut into heads",
  shape: "SAD",
  tell: (sizes) =>
    "The view cuts each token's query into " +
    `${sizes.A} pieces of ${sizes.D}, one per head. No number changes its place in memory.`,
};
const SWAP = {
  name: "heads first",
  shape: "ASD",
  swaps: true,
  tell: () =>
    "The transpose swaps tokens and " +
    "heads: now each head has one block, with its own part of every token. Attention works in each block separately.",
};
const BACK = {
  name: "tokens first",
  shape: "SAD",
  swaps: true,
  tell: () => "After attention, a transpose " + "swaps them back: one block per token, with the parts of all heads.",
};
const JOIN = {
  name: "join the heads",
  shape: "SH",
  tell: () =>
    "The reshape writes the parts of all heads " +
    "side by side: (S, H) again, and every number is where it was at the start.",
};
const CUT = {
  name: "cut in reading order",
  shape: "ASD",
  tell: () => "With one head nothing needs to be swapped, " + "so the mistake does no harm. Take two heads.",
};
export const PATHS = {
  "the right order": [BEGIN, SPLIT, SWAP, BACK, JOIN],
  "split without transpose": [BEGIN, CUT, BACK, JOIN],
  "merge without transpose": [BEGIN, SPLIT, SWAP, JOIN],
};

// The numbers of q after so many steps, and those that a right order would give this shape.
export function compute({ path, at, sizes }) {
  const right = PATHS["the right order"],
    { shape } = PATHS[path][at];
  return {
    numbers: walked(PATHS[path], at, sizes),
    wanted: walked(
      right,
      right.findIndex((step) => step.shape === shape),
      sizes,
    ),
    shape,
  };
}

// view and reshape keep the reading order: they only set a new shape.
function walked(path, last, sizes) {
  let numbers = range(sizes.S * sizes.H),
    shape = "SH";
  for (const next of path.slice(0, last + 1)) {
    if (next.swaps) numbers = transpose(numbers, numbersOf(shape, sizes));
    shape = next.shape;
  }
  return numbers;
}

// Swap the first two dimensions of numbers that are given in reading order.
/** @param {number[]} numbers @param {number[]} shape */
function transpose(numbers, [a, b, c]) {
  return range(b).flatMap((j) => range(a).flatMap((i) => range(c).map((k) => numbers[(i * b + j) * c + k])));
}

// The indices of a position in reading order.
export function placeOf(at, shape) {
  const indices = [];
  for (const size of [...shape].reverse()) {
    indices.unshift(at % size);
    at = Math.floor(at / size);
  }
  return indices;
}

export const makeCompute = () => compute;
