// BERT's tokenizer as notebook 01 builds it, id for id. `rules` are the tables of utils/tokenization.py.
export const SPECIAL = /^\[(?:PAD|UNK|CLS|SEP|MASK)\]$/;

// Each token of a vocabulary, a line each, with its id
export const readVocabulary = (text) => new Map(text.split("\n").map((token, id) => [token, id]));

// What cuts a text into words, special tokens and punctuation among them
export function makeSplitter(rules) {
  /** @type {[string, RegExp][]} */
  const kinds = [
    ["C", /^[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u],
    ["P", /^\p{P}/u],
    ["Mn", /^\p{Mn}/u],
  ];
  const space = /^[\p{Zs}\p{Zl}\p{Zp}]/u;

  function within(character, ranges) {
    const point = character.codePointAt(0);
    return ranges.some(([first, last]) => first <= point && point <= last);
  }

  // "C" for control characters, "P" for punctuation, "Mn" for accents, "" for all others, as of Unicode 8
  function kind(character) {
    if (within(character, rules.later)) return "";
    const earlier = rules.earlier[character];
    if (earlier) return earlier.startsWith("P") ? "P" : earlier;
    return kinds.find(([, pattern]) => pattern.test(character))?.[0] ?? "";
  }

  function clean(character) {
    if ("\t\n\r".includes(character)) return " ";
    if (character === "\ufffd" || kind(character) === "C") return "";
    if (space.test(character)) return " ";
    return within(character, rules.ideographs) ? ` ${character} ` : character;
  }

  function normalize(text) {
    const cleaned = [...text].map(clean).join("");
    if (!rules.lowercase) return cleaned;
    const kept = [...cleaned.normalize("NFD")].filter((character) => kind(character) !== "Mn");
    return kept.map((character) => character.toLowerCase()).join("");
  }

  function words(text) {
    const splits = (character) => "$+<=>^`|~".includes(character) || kind(character) === "P";
    const apart = [...text].map((character) => (splits(character) ? ` ${character} ` : character));
    return apart.join("").split(" ").filter(Boolean);
  }

  return function split(text) {
    const parts = text.split(/(\[(?:PAD|UNK|CLS|SEP|MASK)\])/);
    return parts.flatMap((part) => (SPECIAL.test(part) ? [part] : words(normalize(part))));
  };
}

// Greedy longest match from the left: each piece that is tried, the longest first, with its id if it has one. A special
// token stays whole, and of a word that is too long nothing is tried.
export function findTries(word, ids, rules) {
  const characters = [...word],
    tries = [];
  if (SPECIAL.test(word) || characters.length > rules.longest) return tries;
  for (let start = 0, end = characters.length; start < end; ) {
    const piece = (start ? "##" : "") + characters.slice(start, end).join(""),
      id = ids.get(piece);
    tries.push({ start, end, piece, id });
    if (id === undefined) end--;
    else [start, end] = [end, characters.length];
  }
  return tries;
}

// The pieces that were found; the whole word is [UNK] if some rest matches nothing
export function keepPieces(word, tries) {
  if (SPECIAL.test(word)) return [word];
  if (tries.at(-1)?.id === undefined) return ["[UNK]"];
  return tries.filter(({ id }) => id !== undefined).map(({ piece }) => piece);
}

export function makeTokenizer(vocabulary, rules) {
  const ids = readVocabulary(vocabulary),
    split = makeSplitter(rules);
  const tokenize = (text) => split(text).flatMap((word) => keepPieces(word, findTries(word, ids, rules)));

  // [CLS] text [SEP], and pair [SEP] if there is one: tokens, their ids, and 0 or 1 for the sentence each is of
  return function encode(text, pair = null) {
    const first = ["[CLS]", ...tokenize(text), "[SEP]"];
    const second = pair === null ? [] : [...tokenize(pair), "[SEP]"];
    const tokens = [...first, ...second];
    return { tokens, ids: tokens.map((token) => ids.get(token)), types: tokens.map((_, i) => +(i >= first.length)) };
  };
}
