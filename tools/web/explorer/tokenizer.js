// BERT's tokenizer as notebook 01 builds it, id for id. `rules` are the tables of utils/tokenization.py.
function makeTokenizer(vocabulary, rules) {
  const ids = new Map(vocabulary.split("\n").map((token, id) => [token, id]));
  const kinds = [["C", /^[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u], ["P", /^\p{P}/u], ["Mn", /^\p{Mn}/u]];
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

  // greedy longest match from the left; the whole word is [UNK] if some rest matches nothing
  function pieces(word) {
    const characters = [...word], found = [];
    if (characters.length > rules.longest) return ["[UNK]"];
    for (let start = 0, end; start < characters.length; start = end) {
      const piece = () => (start ? "##" : "") + characters.slice(start, end).join("");
      for (end = characters.length; end > start && !ids.has(piece()); end--);
      if (end === start) return ["[UNK]"];
      found.push(piece());
    }
    return found;
  }

  function tokenize(text) {
    const special = /^\[(?:PAD|UNK|CLS|SEP|MASK)\]$/;
    const parts = text.split(/(\[(?:PAD|UNK|CLS|SEP|MASK)\])/);
    return parts.flatMap((part) => (special.test(part) ? [part] : words(normalize(part)).flatMap(pieces)));
  }

  // [CLS] text [SEP], and pair [SEP] if there is one: tokens, their ids, and 0 or 1 for the sentence each is of
  return function encode(text, pair = null) {
    const first = ["[CLS]", ...tokenize(text), "[SEP]"];
    const second = pair === null ? [] : [...tokenize(pair), "[SEP]"];
    const tokens = [...first, ...second];
    return { tokens, ids: tokens.map((token) => ids.get(token)), types: tokens.map((_, i) => +(i >= first.length)) };
  };
}
