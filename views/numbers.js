// Numbers, and what is written and drawn of them, for views, figures, the explorer and type_bert.html. No page is needed.

export function format(number, digits = 2) {
  return Number.isFinite(number)
    ? number
        .toFixed(digits)
        .replace(/^-(0(\.0+)?)$/, "$1")
        .replace("-", "\u2212")
    : "\u2013";
}

// The bytes of a base64 text, as they are or decompressed. Older browsers lack `fromBase64`.
export function bytesOf(text) {
  const { fromBase64 } = /** @type {any} */ (Uint8Array);
  if (fromBase64) return fromBase64.call(Uint8Array, text);
  const letters = atob(text),
    bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
export async function inflate(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Read rows of numbers from base64 of float32, as `pack` in figures.py writes them.
export function unpack(text, size) {
  const flat = new Float32Array(bytesOf(text).buffer);
  return Array.from({ length: flat.length / size }, (_, row) => [...flat.subarray(row * size, (row + 1) * size)]);
}

// Of the bits of a float16.
export function float16(bits) {
  const sign = bits >> 15 ? -1 : 1,
    exponent = (bits >> 10) & 31,
    fraction = (bits & 1023) / 1024;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
export const dot = (a, b) => sum(a.map((number, i) => number * b[i]));

export function softmax(scores) {
  const most = Math.max(...scores),
    parts = scores.map((score) => Math.exp(score - most)),
    total = sum(parts);
  return parts.map((part) => part / total);
}

export const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
// Letters from right to left are isolated, as in <bdi>: they keep the order of the sentence around them.
export const quoted = (name) => `\u201c${FROM_THE_RIGHT.test(name) ? `\u2068${name.trim()}\u2069` : name}\u201d`;

export const largest = (numbers) => numbers.indexOf(Math.max(...numbers));
export const percent = (share) => `${Math.round(100 * share)} %`;

// The head of an arrow that points to the right, with its tip at the origin.
export const arrowhead = (size) =>
  `M0 0L${-1.6 * size} ${0.75 * size}L${-1.3 * size} 0L${-1.6 * size} ${-0.75 * size}Z`;
// What it covers, for makeRoom, if the arrow begins at the origin.
/** @param {number[]} tip */
export function covered([x, y], size) {
  const share = 1 - (0.8 * size) / (Math.hypot(x, y) || 1);
  return [share * x, share * y, 0.8 * size];
}
export const pointing = (x, y) => `translate(${x} ${-y}) rotate(${(-180 * Math.atan2(y, x)) / Math.PI})`;

// The line of an arrow from the origin; it ends within the head.
/** @param {number[]} tip */
export function shaft([x, y], size) {
  const share = Math.max(0, 1 - (1.2 * size) / (Math.hypot(x, y) || 1));
  return `M0 0L${share * x} ${-share * y}`;
}

// The path of a band from x0 to x1; at each end it has a top and a height.
export function bandPath(x0, x1, [a, high], [b, low]) {
  const c = (x1 - x0) / 2;
  return (
    `M${x0} ${a}C${x0 + c} ${a} ${x1 - c} ${b} ${x1} ${b}v${low}C${x1 - c} ${b + low} ${x0 + c} ${a + high} ` +
    `${x0} ${a + high}z`
  );
}

export const clamp = (number, low, high) => Math.max(low, Math.min(high, number));

// The colour at a share, from 0 to 1, of a scale with these stops, [red, green, blue].
export function blend(stops, share) {
  const at = share * (stops.length - 1),
    [low, high] = [stops[Math.floor(at)], stops[Math.ceil(at)]];
  return low.map((channel, i) => Math.round(channel + (high[i] - channel) * (at % 1)));
}

export const capital = (text) => text.replace(/^./, (first) => first.toUpperCase());

// A token, with its position, from 0, if the text has it twice.
export function tokenName(tokens, index) {
  const once = tokens.indexOf(tokens[index]) === tokens.lastIndexOf(tokens[index]);
  return once ? tokens[index] : `${tokens[index]} (position ${index})`;
}
