// A vocabulary that is learned from texts, merge by merge.

import { makeSplitter } from "../tokenizer.js";

// Count the words of a text, and learn from them as far as there are pairs and steps: the words' pieces, the vocabulary
// and the pairs.
export function makeCompute({ rules, steps }) {
  const split = makeSplitter(rules);
  return ({ text }) => {
    const counts = new Map();
    for (const word of split(text)) {
      if (/^\p{L}+$/u.test(word)) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    const singles = (word) => [...word].map((one, i) => (i ? `##${one}` : one));
    const cut = [...counts].map(([word, count]) => ({ count, pieces: singles(word) }));
    cut.sort((a, b) => b.count - a.count);
    const found = [
      withPairs({ words: cut, vocabulary: [...new Set(cut.flatMap(({ pieces }) => pieces))].sort(inOrder) }),
    ];
    while (found.length <= steps && found.at(-1).pairs.length) found.push(merged(found.at(-1)));
    return found;
  };
}

// As Python sorts characters: by number, those that continue a word first.
function inOrder(a, b) {
  const place = (piece) => (piece.startsWith("##") ? piece.codePointAt(2) : 0x200000 + piece.codePointAt(0));
  return place(a) - place(b);
}

// The pairs of neighbours, the most frequent first; of equals, those of the oldest pieces.
function withPairs(state) {
  const found = new Map(),
    rank = new Map(state.vocabulary.map((piece, i) => [piece, i]));
  for (const { count, pieces } of state.words) {
    pieces.slice(1).forEach((right, i) => {
      const left = pieces[i],
        name = `${left} ${right}`;
      if (!found.has(name)) found.set(name, { left, right, piece: left + right.replace("##", ""), count: 0 });
      found.get(name).count += count;
    });
  }
  const age = (a, b) => rank.get(a.left) - rank.get(b.left) || rank.get(a.right) - rank.get(b.right);
  const before = (a, b) => b.count - a.count || age(a, b);
  return { ...state, size: state.vocabulary.length, pairs: [...found.values()].sort(before) };
}

// Where a pair occurs among these pieces, from the left: in "a a a", the first two.
export function places(pieces, pair) {
  const found = [];
  for (let i = 0; pair && i + 1 < pieces.length; i++) {
    if (pieces[i] === pair.left && pieces[i + 1] === pair.right) found.push(i++);
  }
  return found;
}

function merged({ words, vocabulary, pairs: [pair] }) {
  const join = (pieces) => {
    const at = places(pieces, pair);
    return pieces.flatMap((one, i) => (at.includes(i) ? [pair.piece] : at.includes(i - 1) ? [] : [one]));
  };
  const joined = words.map(({ count, pieces }) => ({ count, pieces: join(pieces) }));
  return withPairs({ words: joined, vocabulary: [...vocabulary, pair.piece] });
}
