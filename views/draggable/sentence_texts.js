// What a sentence view shows: the weights of one or two texts, in columns that are aligned, and sentences about them.

import { bytesOf, capital, float16, format, inflate, largest, quoted, sum, unpack } from "../numbers.js";
import { data } from "./figure.js";

export const { labels, drawn, sizes, heads, layers, models } = data;
export const L = layers.length;
export const rows = []; // per text: of each layer, head and token
export const turns = []; // per cut: the degrees of each layer, head and token; empty if they were not measured
export const CUTS = ["link left out", "link left out, its weight shared"];
export const state = { text: 0, before: null, target: 0, all: models, cut: null, ...data.first };
// What is drawn: the columns of each slot, the elements for it, and where they are; `given` is what the map shows.
export const drawing = { slots: [], words: [], ribbons: [], outlines: [], parts: [], tags: [], place: null, given: [] };
export const FULL = 40; // degrees that fill a ribbon of weight 1
const MOST = 128; // columns that are drawn at once, besides one at each end for the others

export const short = (name, most = 16) => (name.length > most ? `${name.slice(0, most - 1)}\u2026` : name);
// The texts that are drawn: one, or the first above and another below.
export const shown = () => (state.both ? [0, state.text || 1] : [state.text]);
export const idsOf = (text) => drawn[state.mode].ids[text];
const count = () => drawn[state.mode].names[0].length;
export const has = (text, column) => idsOf(text).includes(column);

// What the i-th token of a text gives in a head, or on average over those of a layer (`head` is their number) or all.
function weightsOf(all, text, layer, head, i) {
  const own = (one, other) => all[text][(one * heads + other) * sizes[text] + i];
  if (head < heads) return own(layer, head);
  const some = (layer < L ? [layer] : [...layers.keys()]).flatMap((one) =>
    Array.from({ length: heads }, (_, other) => own(one, other)),
  );
  return Array.from(some[0], (_, j) => sum(some.map((each) => each[j])) / some.length);
}

// The weights of a column's words or pieces: averaged over those that look, summed over those that are looked at.
export function row(text, { layer, head, token } = state, all = rows) {
  const ids = idsOf(text),
    shares = Array(count()).fill(0),
    asking = ids.flatMap((column, i) => (column === token ? [i] : []));
  for (const i of asking) {
    weightsOf(all, text, layer, head, i).forEach((weight, j) => {
      shares[ids[j]] += weight / asking.length;
    });
  }
  return shares;
}

// By how many degrees the chosen token's vector turns without its link to each column; null if that is not drawn.
export function turnsOf({ layer, head, token, cut } = state) {
  if (cut === null || !turns.length || state.mode !== "pieces" || layer >= L || head >= heads) return null;
  const row = turns[cut][(layer * heads + head) * sizes[0] + idsOf(0).indexOf(token)];
  return data.last && row.every(Number.isNaN) ? null : row; // of last vectors, one token's were measured
}
export const degrees = (turn) => (Number.isFinite(turn) ? `${format(turn, 1)}\u00b0` : "\u2013");

// The head that is drawn, or the mean of several, in words.
function headInWords() {
  if (state.layer === L) return `on average over all ${L * heads} heads`;
  return `in layer ${layers[state.layer]}, ${state.head < heads ? `head ${state.head}` : `on average over its ${heads} heads`}`;
}

// How much of a column's attention moves from one text to the other; null if one of them doesn't have it.
export function moved(place) {
  const [one, other] = shown().map((text) => (has(text, place.token) ? row(text, place) : null));
  return one && other && sum(one.map((share, i) => Math.abs(share - other[i]))) / 2;
}

const means = new Map(); // of all tokens, by what is compared: they take a moment
export function movedOnAverage(layer, head) {
  const key = [state.mode, state.text, layer, head].join();
  if (!means.has(key)) {
    const each = Array.from({ length: count() }, (_, token) => moved({ layer, head, token })).filter(
      (share) => share !== null,
    );
    means.set(key, sum(each) / each.length);
  }
  return means.get(key);
}

// What is drawn in a row: the columns of the texts, and of a long text those around the chosen one.
export function findSlots() {
  const all = Array.from({ length: count() }, (_, i) => i).filter((column) =>
    shown().some((text) => has(text, column)),
  );
  const start = Math.max(0, Math.min(all.indexOf(state.token) - MOST / 2, all.length - MOST)),
    end = start + MOST;
  const ends = [all.slice(0, start), all.slice(end)].map((columns) => (columns.length ? [columns] : []));
  return [...ends[0], ...all.slice(start, end).map((column) => [column]), ...ends[1]];
}
export const gather = (shares) => drawing.slots.map((columns) => sum(columns.map((column) => shares[column])));
export function nameOf(text, columns) {
  if (columns.length > 1) return `${columns.length} ${columns[0] < state.token ? "before" : "after"}`;
  return drawn[state.mode].names[text][columns[0]];
}

// The column, other than the chosen one, that gets most; of two texts, the one whose weight changes most.
export function best() {
  const [one, other] = shown().map((text) => row(text));
  return other && !isSame(one, other)
    ? largest(one.map((share, i) => Math.abs(share - other[i])))
    : largest(one.map((share, i) => (i === state.token ? -1 : share)));
}

// Whether two rows differ by less than a hundredth, as those of two models that agree.
const isSame = (one, other) => format(sum(one.map((share, i) => Math.abs(share - other[i]))) / 2) === format(0);

// Whether a token gives the same to all, so that none gets most.
export const isEven = (shares) => Math.max(...shares) - Math.min(...shares) < 1e-6;

// The same words as in sentence.py.
export function title() {
  const [one, other] = shown().map((text) => row(text)),
    [names, second] = shown().map((text) => drawn[state.mode].names[text]);
  const { token } = state,
    asker = quoted(names[token] || second[token]);
  if (!other) {
    const most = largest(one),
      goal = most === token ? "itself" : quoted(names[most]);
    if (!turnsOf()) return isEven(one) ? `${asker} looks at all tokens alike` : `${asker} looks most at ${goal}`;
    const [left, shared] = CUTS.map((_, cut) => degrees(turnsOf({ ...state, cut })[most])),
      link = `Head ${layers[state.layer]}-${state.head}, link of ${asker} to ${goal} (${format(one[most])})`;
    return `${link}: left out, ${data.last ? "the last" : "its"} vector turns by ${left}; shared, by ${shared}`;
  }
  if (!isInBoth()) return `${asker} is in one text only`;
  if (isSame(one, other)) return `${asker} gives the same in both`;
  const change = other.map((share, i) => share - one[i]),
    lost = change.indexOf(Math.min(...change)),
    won = largest(change);
  const all = format(sum(change.map(Math.abs)) / 2);
  return (
    `${all} of the attention of ${asker} moves, mainly from ${quoted(names[lost] || second[lost])} to ` +
    `${quoted(second[won] || names[won])}`
  );
}

export function sentence(token, shares, others, names, second) {
  if (state.both) return comparison(token, shares, others, names, second);
  const order = shares
      .map((_, i) => i)
      .sort((a, b) => shares[b] - shares[a])
      .slice(0, 3),
    rest = drawing.slots.length - order.length;
  const given = order.map((i) => `${format(shares[i])} to ${i === token ? "itself" : quoted(names[i])}`);
  const left = format(1 - sum(order.map((i) => shares[i])));
  const many = rest > 0 ? ` and ${left} to ${rest === 1 ? "the other token" : `the ${rest} others`}` : "";
  const where = capital(headInWords()),
    now = `${where}, ${quoted(names[token])} gives ${given.join(", ")}${many}.`;
  if (isEven(row(state.text)))
    return `${where}, ${quoted(names[token])} gives ${format(shares[token])} to every token.`;
  if (turnsOf()) {
    const whose = `${data.last ? "last vector" : "vector after this layer"} of ${quoted(names[token])}`;
    return `${now} Outline: the weight. Filling: how far the ${whose} turns with this one ${CUTS[state.cut]}; a ribbon of weight 1 is full at ${FULL}\u00b0.`;
  }
  if (!state.before || !has(state.before.text, state.before.token)) return now;
  const was = state.before.text,
    to = drawing.slots.findIndex((columns) => columns.includes(state.target));
  const [gets, got] = [row(state.text), row(was, state.before)].map((own) => format(own[state.target]));
  const exchanged = `With ${quoted(labels[state.text])} instead of ${quoted(labels[was])}`;
  return `${exchanged}, ${quoted(names[to])} gets ${gets}, not ${got}. ${now}`;
}

const isInBoth = () => shown().every((text) => has(text, state.token));

export const sideNames = () => (drawing.place.row ? ["above", "below"] : ["left", "right"]);

function comparison(token, shares, others, names, second) {
  const asker = quoted(names[token] || second[token]);
  if (!isInBoth()) {
    const [own, named] = names[token] ? [shares, names] : [others, second],
      most = largest(own);
    return (
      `${asker} is in one text only, where it gives ${format(own[most])} to ` +
      `${most === token ? "itself" : quoted(named[most])}.`
    );
  }
  const change = shares.map((share, i) => Math.abs(others[i] - share)),
    most = largest(isSame(shares, others) ? shares : change);
  const [one, other] = sideNames().map((side) => (drawing.place.row ? side : `on the ${side}`));
  const nameIt = (name) => (most === token && name === names[token] ? "itself" : quoted(name));
  const [a, b] = [names[most] || second[most], second[most] || names[most]].map(nameIt);
  const gives = `${a} ${format(shares[most])} ${one} and ${a === b ? "" : `${b} `}${format(others[most])} ${other}`;
  const means = layers.map((_, at) => sum(drawing.given[at].slice(0, heads)) / heads),
    layer = largest(means);
  const ofWhich = `${format(means[layer])} of the attention of ${state.all ? "a token" : asker} moves`;
  return [
    `${capital(headInWords())}, ${asker} gives ${gives}.`,
    `Altogether ${format(sum(change) / 2)} of its attention moves.`,
    ...(L > 1 && format(means[layer]) !== format(0)
      ? [`Layer ${layers[layer]} changes most: on average over its heads, ${ofWhich}.`]
      : []),
  ].join(" ");
}

// Read the degrees of both cuts, in hundredths, as `pack_turns` in sentence.py writes them; 65535 is none.
export async function unpackTurns(packed, size) {
  const all = new Uint16Array((await inflate(packed)).buffer),
    each = Array.from(all, (steps) => (steps === 65535 ? Number.NaN : steps / 100)),
    count = each.length / 2 / size;
  return CUTS.map((_, cut) =>
    Array.from({ length: count }, (_, row) => each.slice((cut * count + row) * size, (cut * count + row + 1) * size)),
  );
}

// Read the weights of a text of `size` tokens, as `pack_weights` in sentence.py writes them.
export async function unpackWeights(packed, size) {
  if (typeof packed === "string") return unpack(packed, size);
  const weights = Float32Array.from(await inflate(packed.small)),
    halves = new DataView(bytesOf(packed.large).buffer);
  let at = 0;
  weights.forEach((steps, i) => {
    weights[i] = steps < 63 ? (steps / 250) ** 2 : float16(halves.getUint16(2 * at++, true));
  });
  return Array.from({ length: weights.length / size }, (_, row) => weights.subarray(row * size, (row + 1) * size));
}
