// The tries that cut a word into pieces.

import { findTries, keepPieces, readVocabulary } from "../tokenizer.js";

// What is tried of a word, the pieces that are kept of it, and their ids.
export function makeCompute({ vocabulary, rules }, ids = readVocabulary(vocabulary)) {
  return ({ word }) => {
    const found = findTries(word, ids, rules),
      kept = word ? keepPieces(word, found) : [];
    return { tries: found, kept, ids: [...found.map(({ id }) => id), ...kept.map((piece) => ids.get(piece))] };
  };
}
