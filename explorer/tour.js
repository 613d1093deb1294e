// A guided tour of the page with its saved sentence, so that no model is needed: each stop scrolls to a part, opens it
// and explains it in two or three sentences. `look` is the element it explains, if that is not the first of its part, and `opens` follows the first head.

import { format } from "../views/numbers.js";
import { by } from "../views/elements.js";
import { followed, page, place, quotedName, sizes } from "./state.js";
import { turned } from "./numbers.js";

const STOPS = [
  {
    at: "#station-tokens",
    title: "Text becomes tokens",
    text: () =>
      `We follow one sentence from here to the end: “${page.saved.texts[0]}”. The tokenizer has cut it into tokens, and ` +
      `each token has a number, its id. We follow ${quotedName(followed.token)}, the token with a frame.`,
  },
  {
    at: "#three-rows",
    title: "An id becomes a vector, a sum of three",
    text: () =>
      "The id picks a row of a table: that is the word. A row for the position and a row for the sentence are " +
      "added, and LayerNorm normalizes the sum. Point at or tap a colour to read its number. " +
      "None of this depends on the neighbouring tokens yet.",
  },
  {
    at: "#station-heads",
    look: "#heads",
    title: "All heads",
    opens: true,
    text: () =>
      "Now the tokens look at each other. Each small square is one head: a row for each token, and the stronger " +
      "the colour of a cell, the more that token looks at another. Some heads look at a neighbour, some at the " +
      `ends of the text. We take one of them apart: ${place()}.`,
  },
  {
    at: "#station-scores",
    look: "#station-scores .tables",
    title: "Scores, and attention weights",
    text: () =>
      "Each row is a token that asks, each column a token that answers. The score says how well a query fits a " +
      "key. Softmax turns each row of scores into attention weights, which sum to 1. " +
      `The row of ${quotedName(followed.token)} has a frame.`,
  },
  {
    at: "#station-context",
    look: "#station-context .side-by-side",
    title: "What a token takes from the others",
    text: () =>
      `Each token also offers a value. The context of ${quotedName(followed.token)} is the mixture of all values by ` +
      "its attention weights. That is all that attention does: a weighted average, with weights that the tokens " +
      "decide themselves.",
  },
  {
    at: "#station-attended",
    title: "All heads are added to what came in",
    text: () =>
      `The contexts of all ${sizes.A} heads are put side by side, multiplied by one matrix, and added to the vectors that ` +
      "came in. So a token does not lose what it was: what it takes from the others comes on top.",
  },
  {
    at: "#station-output",
    title: "Then each token alone",
    text: () =>
      `A small network, with ${sizes.I.toLocaleString("en")} units in the middle, works on each token without ` +
      `looking at the others, and adds to it, too. That is a layer, and ${sizes.L} of them follow each other.`,
  },
  {
    at: "#station-final",
    title: "Vectors that know their sentence",
    text: () =>
      "One vector per token comes out, with as many numbers as went in. Between its embedding and this one, " +
      `the cosine of ${quotedName(followed.token)} is ${format(turned(followed.token)[sizes.L])}.`,
  },
];

const hasColumn = matchMedia("(min-width: 1100px)"); // the panel then has its own column

// `follow` and `showText` draw the page, and `begin` is what is followed in the saved sentence.
export function makeTour(follow, showText, begin) {
  const panel = by("tour"),
    part = { at: null, start, go, end };
  let before = null; // the reader's text, choices and boxes, restored at the end

  function start() {
    before = {
      shown: page.shown,
      followed: { ...followed },
      wish: page.wish,
      boxes: [by("first").value, by("second").value],
    };
    part.at = 0;
    page.asked++; // so that a result that arrives during the tour is not shown
    page.wish = null;
    [by("first").value, by("second").value] = page.saved.texts;
    Object.assign(followed, begin);
    showText(page.saved);
    panel.hidden = false;
    document.body.classList.add("on-tour");
    go(0);
  }

  function leave() {
    if (part.at === null) return;
    document.querySelector(STOPS[part.at].at).classList.remove("toured");
  }

  function go(index) {
    leave();
    part.at = index;
    const { at, look = at, title, text, opens } = STOPS[index];
    const [target, seen] = [at, look].map((selector) => document.querySelector(selector));
    if (target.matches("details")) target.open = true;
    if (opens) follow(begin);
    target.classList.add("toured");
    by("tour-place").textContent = `${index + 1} of ${STOPS.length}`;
    by("tour-title").textContent = title;
    by("tour-text").textContent = text();
    tellMore(false);
    by("tour-back").disabled = index === 0;
    const last = index + 1 === STOPS.length;
    by("tour-next").textContent = last ? "End the tour" : "Next";
    by("tour-end").hidden = last;
    target.before(panel); // it floats, and the next Tab leads to the part it explains
    by("tour-title").focus({ preventScroll: true });
    // show the heading, too, if both fit; otherwise only what the stop explains
    const above = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
    const room = (hasColumn.matches ? innerHeight : panel.getBoundingClientRect().top) - above;
    const whole = seen.getBoundingClientRect().bottom - target.getBoundingClientRect().top;
    (whole <= room ? target : seen).scrollIntoView({ block: "start", behavior: "instant" });
  }

  // On a narrow page, the panel is a bar that shows the first line of its text
  function tellMore(more) {
    panel.classList.toggle("more", more);
    by("tour-more").setAttribute("aria-expanded", more);
    by("tour-more").textContent = more ? "Less" : "More";
  }

  function next() {
    if (part.at + 1 < STOPS.length) go(part.at + 1);
    else end();
  }

  function end() {
    leave();
    part.at = null;
    panel.hidden = true;
    document.body.classList.remove("on-tour");
    page.wish = before.wish;
    [by("first").value, by("second").value] = before.boxes;
    showText(before.shown);
    follow(before.followed);
    by("tour-start").focus();
  }

  by("tour-start").onclick = () => (part.at === null ? start() : go(0));
  by("tour-next").onclick = next;
  by("tour-back").onclick = () => go(part.at - 1);
  by("tour-end").onclick = end;
  by("tour-more").onclick = () => tellMore(!panel.classList.contains("more"));
  document.addEventListener("keydown", (event) => {
    if (part.at !== null && event.key === "Escape") end();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight") next();
    if (event.key === "ArrowLeft" && part.at > 0) go(part.at - 1);
  });
  return part;
}
