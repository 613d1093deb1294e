// How a word is cut into pieces: each piece that is tried as a bar under its letters, from the longest on.

explain(
  "Type any text and choose one of its words. Then step back and forth through the tries: the longest " +
  "piece comes first, and one character less each time, until a piece is in the vocabulary.",
);

const ids = readVocabulary(data.vocabulary), split = makeSplitter(data.rules), SHOWN = 40; // tries, the latest
const vocabulary = `the vocabulary of ${ids.size.toLocaleString("en")} tokens`;
const state = { word: "", tries: [], kept: [] };

add(document.head, "style", {}, `
  .words { min-height: 32px; margin-bottom: 8px; line-height: 28px; }
  .pieces { min-height: 30px; }
  .words label { display: inline-block; max-width: 95%; white-space: normal; overflow-wrap: anywhere; }
  .tries { min-height: 120px; max-height: 270px; overflow-y: auto; }
  .letters { display: grid; width: max-content; padding-right: 17em; row-gap: 1px; }
  .letter, .cut, .rest, .head { position: sticky; top: 0; } /* above the tries that scroll */
  .head { margin-right: -17em; background: var(--ground, var(--paper)); }
  .letter { min-width: 24px; line-height: 26px; text-align: center; font-size: 17px; }
  .cut { margin: 0 1px; border: 2px solid var(--average); border-radius: 5px; }
  .rest { margin: 0 1px; border: 2px dotted var(--line); border-radius: 5px; }
  .try { height: 9px; margin: 3px 1px; border: 1.5px solid var(--below); border-radius: 5px; }
  .found.try { background: var(--average); border-color: var(--average); }
  .tried { width: 0; padding-left: 6px; line-height: 18px; font-size: 13px; white-space: nowrap; color: var(--soft); }
  .found.tried { color: var(--average); font-weight: bold; }
  .last.tried { color: inherit; }
  .pieces .piece { border-color: var(--average); }
  .pieces .id { margin-left: 0.6em; color: var(--soft); }
`);

const box = typed(figure, "Your text", data.text, { rows: 1, most: data.most }, read);
const words = add(figure, "div", { class: "words" });
const named = { tabindex: 0, role: "group", "aria-label": "The pieces tried" };
const tries = add(figure, "div", { class: "scroll tries", ...named });
const letters = add(tries, "div", { class: "letters" });
const pieces = add(figure, "div", { class: "pieces" });
figure.append(document.getElementById("say"));
const stepper = steps(add(figure, "div", { class: "controls" }), "try", 0, draw);

// The words of the text, and the one that is written at the moment.
function read(text, at = Infinity) {
  const all = split(text), written = split(text.slice(0, box.selectionStart)).length - 1;
  words.replaceChildren();
  open(all[Math.max(0, written)] ?? "", at);
  if (all.length) choice(words, "Word", [...new Set(all)], state.word, open);
}

function open(word, at = Infinity) {
  const found = findTries(word, ids, data.rules);
  Object.assign(state, { word, tries: found, kept: word ? keepPieces(word, found) : [] });
  tries.style.height = `${34 + 19 * found.length}px`; // from the first step on, so that nothing below moves
  stepper.last(found.length, Math.min(at, found.length)); // all of it, from where a reader may step back
}

function draw(at) {
  const done = state.tries.slice(0, at), last = done.at(-1), finished = at === state.tries.length;
  const found = done.filter(({ id }) => id !== undefined), used = found.at(-1)?.end ?? 0;
  letters.replaceChildren();
  const characters = [...state.word];
  if (characters.length) addOver("head", 1, 0, characters.length);
  for (const { start, end } of found) addOver("cut", 1, start, end);
  if (used < characters.length) addOver("rest", 1, used, characters.length);
  characters.forEach((character, i) => addOver("letter", 1, i, i + 1, character));
  done.slice(-SHOWN).forEach((one, i) => drawTry(one, i + 2, one === last));
  tries.scrollTop = tries.scrollHeight;
  tries.scrollLeft = 24 * ((last?.start ?? 0) - 4);
  pieces.replaceChildren("Pieces and their ids: ");
  for (const piece of finished ? state.kept : found.map((one) => one.piece)) {
    const chip = add(pieces, "span", { class: "piece" });
    add(chip, "b", { class: "token" }, piece);
    show(add(chip, "span", { class: "id" }), ids.get(piece), 0);
  }
  say(tell(last, found.length, finished));
}

function drawTry({ start, end, piece, id }, line, isLast) {
  const known = id !== undefined, kind = `${known ? "found" : ""} ${isLast ? "last" : ""}`;
  const answer = isLast ? `: in the vocabulary? ${known ? "yes" : "no"}` : "";
  addOver(`try ${kind}`, line, start, end);
  addOver(`tried ${kind}`, line, end, end + 1, `${known ? "✓" : "✗"} ${piece}${answer}`);
}

// Something in this line of the picture that reaches from one letter to another.
function addOver(kind, line, start, end, text = "") {
  add(letters, "span", { class: kind, style: `grid-area: ${line} / ${start + 1} / auto / ${end + 1}` }, text);
}

function tell(last, count, finished) {
  const { word, tries } = state, length = [...word].length;
  if (!word) return "There is no word yet: type one.";
  if (SPECIAL.test(word)) return `${word} is a special token, which is never cut.`;
  if (length > data.rules.longest) {
    return `A word of more than ${data.rules.longest} characters is not cut at all: it becomes [UNK].`;
  }
  if (!last) return `“${word}” has ${length} characters. The whole word is tried first.`;
  const { end, piece, id } = last;
  if (id === undefined && finished) {
    const lost = count ? ", and the pieces found before are dropped" : "";
    return `No piece fits here, not even “${piece}” alone: the whole word becomes [UNK], “unknown”${lost}.`;
  }
  if (id === undefined) {
    return `“${piece}” is not in ${vocabulary}: the last character is left off, and the rest is tried.`;
  }
  if (!finished) {
    const rest = [...word].slice(end).join("");
    return `“${piece}” is in the vocabulary: the longest piece that fits here. Go on with “${rest}”; ## means that ` +
      "it continues a word.";
  }
  if (count === 1) return `“${word}” is in ${vocabulary} as a whole: one try, one piece.`;
  return `“${word}” is not in ${vocabulary}, but ${count} pieces build it. ` +
    `They were found in ${tries.length} tries, from the left, the longest first.`;
}

read(data.text, 1); // the first try, from where a reader steps on
