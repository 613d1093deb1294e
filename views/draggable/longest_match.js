// How a word is cut into pieces: each piece that is tried is a box under its letters, the longest first.

import { clamp } from "../numbers.js";
import { add, by } from "../elements.js";
import { choice, data, explain, figure, glide, keepChoices, say, show, shownBy, steps, typed } from "./figure.js";
import { makeSplitter, readVocabulary, SPECIAL } from "./tokenizer.js";
import { makeCompute } from "./compute/longest_match.js";

explain("Click or tap between two letters to guess the cuts, then play the tries; or type a text of your own.");

const ids = readVocabulary(data.vocabulary),
  compute = makeCompute(data, ids),
  split = makeSplitter(data.rules),
  SHOWN = 40, // tries, the latest
  CELL = { least: 24, most: 40 }; // pixels of a letter
const vocabulary = `the vocabulary of ${ids.size.toLocaleString("en")} tokens`;
const state = { word: "", tries: [], kept: [], guessed: new Set() };

const box = typed(figure, "Your text", data.text, { rows: 1, most: data.most }, read);
const words = add(figure, "div", { class: "words" });
// The buttons come first: what grows below them does not move them.
const stepper = steps(add(figure, "div", { class: "controls" }), "try", 0, draw);
add(figure, "div", { class: "said" }).append(by("say")); // as high as its longest sentence
const named = { tabindex: 0, role: "group", "aria-label": "The pieces tried" };
const tries = add(figure, "div", { class: "scroll tries", ...named });
const letters = add(tries, "div", { class: "letters" });
const pieces = add(figure, "div", { class: "pieces" });

// Show the words of the text, and open the one that is being typed.
function read(text) {
  const all = split(text),
    written = split(text.slice(0, box.selectionStart)).length - 1;
  words.replaceChildren();
  open(all[Math.max(0, written)] ?? "");
  if (all.length > 1) choice(words, "Word", [...new Set(all)], state.word, open);
}

function open(word) {
  const { tries, kept } = compute({ word });
  Object.assign(state, { word, tries, kept, guessed: new Set() });
  stepper.last(tries.length, +(tries.length > 1)); // the whole word is tried: a reader can still guess its cuts
}

function draw(at) {
  const done = state.tries.slice(0, at),
    last = done.at(-1),
    finished = at === state.tries.length;
  const found = done.filter(({ id }) => id !== undefined),
    used = found.at(-1)?.end ?? 0;
  letters.replaceChildren();
  const characters = [...state.word];
  if (characters.length) addOver("head", 1, 0, characters.length);
  for (const { start, end } of found) addOver("cut", 1, start, end);
  if (used < characters.length) addOver("rest", 1, used, characters.length);
  characters.forEach((character, i) => addOver("letter", 1, i, i + 1, character));
  for (let i = 1; i < characters.length && i < 40; i++) addGap(i, at > 1);
  done.slice(-SHOWN).forEach((one, i) => drawTry(one, i + 2, one === last));
  tries.scrollTop = tries.scrollHeight;
  const cell = clamp(Math.floor((tries.clientWidth - 190) / characters.length), CELL.least, CELL.most);
  tries.style.setProperty("--cell", `${cell}px`);
  const wide = cell * characters.length > tries.clientWidth - 20;
  tries.scrollLeft = wide ? cell * ((last?.start ?? 0) - 4) : 0;
  pieces.replaceChildren(found.length || finished ? "Pieces and their ids: " : "");
  for (const piece of finished ? state.kept : found.map((one) => one.piece)) {
    const chip = add(pieces, "span", { class: "piece" });
    add(chip, "b", { class: "token" }, piece);
    show(add(chip, "span", { class: "id" }), ids.get(piece), 0);
  }
  say(tell(last, found.length, finished));
}

function drawTry({ start, end, piece, id }, line, isLast) {
  const known = id !== undefined,
    kind = `${known ? "found" : ""} ${isLast ? "last" : ""}`;
  const answer = isLast && !known ? " not in the vocabulary" : "";
  const bar = addOver(`try ${kind}`, line, start, end);
  for (const letter of [...state.word].slice(start, end)) add(bar, "span", {}, letter);
  if (isLast) {
    const stretchTo = ([now]) => {
      bar.style.transform = `scaleX(${Math.max(0, now - start) / (end - start)})`;
    };
    const before = shownBy.get(letters)?.[0];
    glide(letters, [end], stretchTo, [before === undefined || before === end ? start : before]);
  }
  addOver(`tried ${kind}`, line, end, end + 1, `${known ? `✓ ${piece}` : "✗"}${answer}`);
}

// Add an element to this line of the picture, from one letter to another.
function addOver(kind, line, start, end, text = "") {
  return add(letters, "span", { class: kind, style: `grid-area: ${line} / ${start + 1} / auto / ${end + 1}` }, text);
}

// Between two letters: where the reader expects a cut. After the first try, guesses stay as they are.
function addGap(at, begun) {
  const chosen = state.guessed.has(at),
    before = [...state.word].slice(0, at).join("");
  if (begun && !chosen) return;
  const gap = add(letters, "button", {
    type: "button",
    class: "gap",
    style: `grid-area: 1 / ${at + 1} / auto / ${at + 2}`,
    "aria-pressed": chosen,
    "aria-label": `cut after ${before}`,
  });
  gap.disabled = begun;
  gap.addEventListener("click", () => {
    if (!state.guessed.delete(at)) state.guessed.add(at);
    gap.setAttribute("aria-pressed", state.guessed.has(at));
    say(tell(stepper.at() ? state.tries[0] : undefined));
  });
}

// How the guess compares with the cuts, at the end.
function verdict() {
  if (!state.guessed.size) return "";
  const cuts = state.tries
    .filter(({ id }) => id !== undefined)
    .slice(0, -1)
    .map(({ end }) => end);
  const right = cuts.filter((cut) => state.guessed.has(cut)).length;
  return right === cuts.length && right === state.guessed.size
    ? " You guessed it."
    : ` Of your ${state.guessed.size} cut${state.guessed.size > 1 ? "s" : ""}, ${right} ` +
        `${right === 1 ? "is" : "are"} among them.`;
}

function tell(last, count, finished) {
  const { word, tries } = state,
    length = [...word].length;
  if (!word) return "There is no word yet: type one.";
  if (SPECIAL.test(word)) return `${word} is a special token, which is never cut.`;
  if (length > data.rules.longest) {
    return `A word of more than ${data.rules.longest} characters is not cut at all: it becomes [UNK].`;
  }
  if (!last) return `“${word}” has ${length} characters. Press “play” or “next”: the whole word is tried first.`;
  const { end, piece, id } = last;
  if (id === undefined && finished) {
    const lost = count ? ", and the pieces found before are dropped" : "";
    return `No piece fits here, not even “${piece}” alone: the whole word becomes [UNK], “unknown”${lost}.`;
  }
  if (id === undefined) {
    const guess = state.guessed.size
      ? "Your guess is marked."
      : "Where will it be cut? Click or tap between two letters.";
    return `“${piece}” is not in ${vocabulary}: the last character is left off${last === tries[0] ? `. ${guess}` : ", and the rest is tried."}`;
  }
  if (!finished) {
    const rest = [...word].slice(end).join("");
    return (
      `“${piece}” is in the vocabulary: the longest piece that fits here. Go on with “${rest}”; ## means that ` +
      "it continues a word."
    );
  }
  if (count === 1) return `“${word}” is in ${vocabulary} as a whole: one try, one piece.`;
  return (
    `“${word}” is not in ${vocabulary}, but ${count} pieces build it. ` +
    `They were found in ${tries.length} tries, from the left, the longest first.${verdict()}`
  );
}

read(data.text);
keepChoices();
