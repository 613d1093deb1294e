// A query and a key that are turned by their positions, and their product.

import { dot } from "../../numbers.js";

export const turn = ([x, y], by) => [x * Math.cos(by) - y * Math.sin(by), x * Math.sin(by) + y * Math.cos(by)];
export const productAt = (far, angle, vectors) => dot(turn(vectors[0], far * angle), vectors[1]);

// Both arrows, turned by their positions, their product, and that of every distance.
export function makeCompute({ names }) {
  const N = names.length;
  return ({ angle, at, vectors }) => {
    const turned = vectors.map((vector, i) => turn(vector, at[i] * angle)),
      each = Array.from({ length: 2 * N - 1 }, (_, i) => i + 1 - N);
    return { turned, product: dot(...turned), products: each.map((far) => productAt(far, angle, vectors)) };
  };
}
