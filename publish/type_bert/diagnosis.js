// Name the mistake of a BERT from a file of its numbers, as exercises/diagnosis does, but from a few projections of them.

import { dot, unpack } from "../../views/numbers.js";

const MORE =
  "Run python -m exercises diagnose with this file: it knows two mistakes at once, 16 bits, single layers, and vectors.";
const SAVE = "Save float32 in C order, with np.save(name, np.ascontiguousarray(y, dtype=np.float32))";

// The shape, numbers and sums of weights in a file
export function readNumbers(name, bytes) {
  const found = name.endsWith(".json") ? readLists(bytes) : readArray(bytes);
  if (found.numbers.length !== found.shape.reduce((a, b) => a * b, 1))
    throw new Error("The file is cut off, or its lists are not equally long.");
  return found;
}

function readLists(bytes) {
  const content = JSON.parse(new TextDecoder().decode(bytes)),
    lists = Array.isArray(content) ? content : content?.numbers,
    numbers = [lists].flat(Number.POSITIVE_INFINITY),
    shape = [];
  if (!numbers.every((number) => typeof number === "number"))
    throw new Error('The JSON must be nested lists of numbers, or have them under "numbers".');
  for (let part = lists; Array.isArray(part); part = part[0]) shape.push(part.length);
  return { shape, numbers, sums: content.sums_of_absolute_values };
}

function readArray(bytes) {
  const view = new DataView(bytes.buffer),
    [start, length] = bytes[6] === 1 ? [10, 2] : [12, 4]; // where the head begins, and the bytes of its length
  if (bytes.length < start || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY")
    throw new Error("This is neither a .npy file nor a .json file.");
  const end = start + (length === 2 ? view.getUint16(8, true) : view.getUint32(8, true)),
    head = new TextDecoder().decode(bytes.subarray(start, end)),
    kind = head.match(/'descr': '([^']*)'/)?.[1],
    Type = { "<f4": Float32Array, "<f8": Float64Array }[kind];
  if (!Type || head.includes("'fortran_order': True"))
    throw new Error(`The array is ${kind ?? "of records"}${Type ? " in Fortran order" : ""}. ${SAVE}.`);
  const shape = head.match(/'shape': \(([^)]*)\)/)?.[1].match(/\d+/g) ?? [],
    data = bytes.slice(end, bytes.length - ((bytes.length - end) % Type.BYTES_PER_ELEMENT));
  return { shape: shape.map(Number), numbers: new Type(data.buffer) };
}

// The projections of the vectors of real tokens, of the last states
function project(numbers, { shape: [rows, S, H], real, directions: [, text] }) {
  const last = numbers.slice(-rows * S * H),
    directions = unpack(text, H);
  return real.flatMap((token) => {
    const vector = last.slice(token * H, (token + 1) * H);
    return directions.map((direction) => dot(direction, vector));
  });
}

const size = (list) => Math.sqrt(dot(list, list)),
  minus = (list, other) => list.map((number, i) => number - other[i]);

// What numbers show, in a sentence
export function diagnose({ shape, numbers, sums = {} }, data) {
  const wanted = data.shape.join(", ");
  if (shape.slice(-3).join(", ") !== wanted || !(shape.length === 3 || (shape.length === 4 && shape[0] > 1)))
    return `The shape of these numbers is (${shape.join(", ")}). Save the last states, (${wanted}), or all. ${MORE}`;
  const other = Object.entries(data.sums).find(([name, sum]) => Math.abs((sums[name] ?? sum) - sum) > 0.01 * sum);
  if (other)
    return `The weights are not placed: the numbers of ${other[0]} are not the checkpoint\u2019s. Load them first.`;
  if (!numbers.every(Number.isFinite))
    return "Some numbers are not finite: look for a row of scores that are all \u2212\u221e.";
  const theirs = project(numbers, data),
    [mark, ...kept] = unpack(data.kept[1], data.kept[0]),
    { noise, clear, exact } = data.limits;
  const guesses = kept.map((guess, i) => ({
    says: data.says[i],
    guess,
    away: size(minus(guess, theirs)) / Math.max(size(guess), size(theirs)),
  }));
  guesses.sort((a, b) => a.away - b.away);
  const [{ away, guess }] = guesses,
    left = minus(theirs, guess);
  if (dot(left, mark) > 0.5 * size(left) * size(mark))
    return "These are the numbers of exercise 6.4: this mistake is yours to name.";
  const fits = guesses.filter((each) => each.away <= clear * Math.max(away, exact)),
    next = guesses[fits.length];
  if (away > noise || !next)
    return `No single mistake that we know: the nearest numbers are ${away.toPrecision(2)} away. ${MORE}`;
  const several = fits.length > 1 ? "One of these, which your numbers do not tell apart: " : "",
    named = several + fits.map(({ says }) => says).join(" "),
    isRight = fits.some(({ says }) => says === data.says[0]);
  return (
    `${isRight ? data.says[0] : named} Your numbers equal these up to ${away.toExponential(1)} of their size; ` +
    `the next guess is ${next.away.toPrecision(2)} away.`
  );
}
