// How a vocabulary is learned: the most frequent pair of neighbouring pieces becomes one piece, again and again.

import { add, by } from "../elements.js";
import { data, explain, figure, keepChoices, rearrange, say, show, steps, stretch, table, typed } from "./figure.js";
import { makeCompute, places } from "./compute/merges.js";

explain(
  "Press “play”, or “next” for one merge: the framed pair becomes one piece in every word; " +
    "or type texts of your own, and learning starts again.",
);

const compute = makeCompute(data),
  SHOWN = 6; // pairs
let states = [],
  lengths = {}; // of the bars of pairs
const state = { text: "" };

const stepper = steps(add(figure, "div", { class: "controls" }), "merge", 0, draw);
figure.append(by("say"));
const row = add(figure, "div", { class: "row" }),
  left = add(row, "div"),
  right = add(row, "div");
add(left, "h2", {}, "The words, how often each occurs, and their pieces");
const words = scrolled(left, "words", "The words and their pieces");
add(right, "h2", {}, "The most frequent pairs of neighbours");
const pairs = add(right, "div", { class: "pairs" });
const kept = scrolled(figure, "kept", "The vocabulary"),
  size = add(kept, "b", { class: "size" });
const own = add(figure, "details");
add(own, "summary", {}, "your own texts");
typed(own, "Your texts", data.text, { rows: 6, most: data.most }, begin);

function scrolled(parent, kind, name) {
  return add(parent, "div", { class: `scroll ${kind}`, tabindex: 0, role: "group", "aria-label": name });
}

function begin(text) {
  state.text = text;
  states = compute(state);
  stepper.last(states.length - 1);
}

function draw(at) {
  const state = states[at],
    singles = states[0].vocabulary,
    learned = state.vocabulary.slice(singles.length);
  rearrange(figure, () => {
    drawWords(state, learned);
    drawPairs(state.pairs.slice(0, SHOWN));
  });
  kept.replaceChildren("Vocabulary of ", size, `: ${singles.length} characters${learned.length ? " and " : ""}`);
  show(size, state.size, 0);
  learned.forEach((piece, i) => add(kept, "span", { class: i === at - 1 ? "piece new" : "piece" }, piece));
  say(tell(state, at));
}

function drawWords({ words: all, pairs: [next] }, learned) {
  words.replaceChildren();
  words.classList.toggle("few", all.length <= 6); // a line each, so that none moves
  all.forEach(({ count, pieces }, row) => {
    const word = add(words, "span", { class: "word" }),
      at = places(pieces, next);
    let start = 0;
    show(add(word, "span", { class: "times" }), count, 0);
    word.firstChild.append(" ×");
    pieces.forEach((piece, i) => {
      const isNext = at.includes(i) || at.includes(i - 1);
      const kind = `piece ${isNext ? "next" : ""} ${piece === learned.at(-1) ? "new" : ""}`;
      add(word, "span", { class: kind, "data-key": `${row} ${start}` }, piece);
      start += [...piece.replace("##", "")].length;
    });
  });
}

function drawPairs(best) {
  pairs.replaceChildren();
  const cells = table(
    pairs,
    ["pair", "becomes", "times", "of equals, older pieces first"],
    best.map((pair) => `${pair.left} + ${pair.right}`),
  );
  pairs.firstChild.tabIndex = 0;
  const made = {};
  cells.forEach(([piece, times, track], i) => {
    piece.textContent = best[i].piece;
    show(times, best[i].count, 0);
    track.className = "track";
    const { left, right, count } = best[i],
      share = count / best[0].count,
      key = `${left} ${right}`;
    track.parentNode.dataset.key = key;
    stretch(add(track, "span", { class: i ? "bar" : "bar first" }), share, lengths[key]);
    made[key] = [share];
  });
  lengths = made;
}

function tell({ words: all, vocabulary, pairs: [next] }, at) {
  if (!all.length) return "There is no word of letters here: type some.";
  const start = "Each word begins as single characters; ## means that a piece continues a word. ";
  const done = at ? `“${vocabulary.at(-1)}” is a piece now. ` : start;
  if (!next) return `${done}Every word is one piece: there is no pair left to merge.`;
  const often = next.count === 1 ? "once" : `${next.count} times`;
  const end = at === data.steps ? `Here we stop, after ${at} merges; the next would make` : "The next merge makes";
  return (
    `${done}The most frequent pair is “${next.left}” before “${next.right}”, ${often}. ` +
    `${end} one piece of it, “${next.piece}”.`
  );
}

begin(data.text);
keepChoices();
