// The page: the text that is shown, the followed token, layer and head, and the reader's input.

import { format } from "../views/numbers.js";
import { add, by, set } from "../views/elements.js";
import { headMap } from "../views/draggable/head_map.js";
import { makeTokenizer } from "../views/draggable/tokenizer.js";
import { followed, nameOf, page, place, quotedName, sizes } from "./state.js";
import {
  contextOf,
  ofHead,
  ofLayer,
  packed,
  rowOf,
  rowsOfEmbedding,
  scoresOf,
  startOf,
  turned,
  unpackNumbers,
  wordsOf,
} from "./numbers.js";
import { colours, Matrix, reach, Rows, step, thumbnail } from "./draw.js";
import { makeModel } from "./model.js";
import { makeTour } from "./tour.js";
import "./theme.js";

const DATA = JSON.parse(by("data").textContent);
Object.assign(sizes, DATA.sizes, { D: DATA.sizes.H / DATA.sizes.A });
Object.assign(followed, DATA.shown);
page.saved = { ...DATA.saved, ...unpackNumbers(DATA.saved.numbers, DATA.saved.half) };
page.shown = page.saved;
page.types = unpackNumbers({}, { types: DATA.types }).types;

const number = (row, column, value) => `${nameOf(row)}, number ${column}: ${format(value, 3)}`;
const rows = (id, caption) => new Rows(by(id), caption, number, chooseToken);
const rowsOfSum = () => {
  const { token } = followed,
    kind = page.shown.types[token] ? "second sentence" : "first sentence";
  return [`word ${quotedName(token)}`, `place ${token}`, kind, "their sum"];
};
const drawings = {
  embeddings: rows("embeddings", "Embeddings"),
  scores: new Matrix(
    by("scores"),
    "Attention scores",
    (row, column, value) => `${nameOf(row)} → ${nameOf(column)}: q · k / √${sizes.D} = ${format(value)}`,
    chooseToken,
  ),
  weights: new Matrix(
    by("weights"),
    "Attention weights",
    (row, column, value) => `${place()}: ${nameOf(row)} → ${nameOf(column)} ${format(value, 3)}`,
    chooseToken,
  ),
  values: rows("values", "Values v"),
  context: rows("context", "Context = weights · v"),
  attended: rows("attended", "After attention"),
  output: rows("output", "What the layer gives"),
  final: rows("final", "Last hidden state"),
  three: new Rows(
    by("three"),
    "Three rows and their sum",
    (row, column, value) => `${rowsOfSum()[row]}, number ${column}: ${format(value, 3)}`,
  ),
};

// The tokens as buttons, exactly one of which is chosen; arrow keys move the choice
function fillTokens({ tokens, ids, types }) {
  const host = by("tokens");
  host.replaceChildren();
  const chips = tokens.map((token, i) => {
    const label = `${nameOf(i)}, id ${ids[i]}`,
      kind = types[i] ? "second" : "first",
      chip = add(host, "button", { type: "button", role: "radio", "aria-label": label, class: kind });
    add(chip, "b", {}, token);
    add(chip, "span", {}, ids[i]);
    chip.addEventListener("click", () => chooseToken(i));
    return chip;
  });
  host.onkeydown = (event) => {
    const next = step(event.key, 0, chips.indexOf(event.target), 1, chips.length);
    if (!next) return;
    event.preventDefault();
    chooseToken(next[1]);
    chips[next[1]].focus();
  };
}

const range = (count) => Array.from({ length: count }, (_, i) => i);
const heads = headMap(
  by("heads"),
  range(sizes.L),
  sizes.A,
  "radio",
  (layer, head) => chooseHead({ layer, head }),
  false,
);
for (const cell of heads.cells.flat()) add(cell, "canvas");

function fillSelect(select, texts, choose) {
  select.replaceChildren();
  texts.forEach((text, value) => add(select, "option", { value }, text));
  select.onchange = () => choose(+select.value);
}

// The position of a word in another text: the one closest to its old position, undefined if the word is not there
function find({ word, place: old }, tokens) {
  const places = tokens.flatMap((token, i) => (token === word ? [i] : []));
  return places.sort((a, b) => Math.abs(a - old) - Math.abs(b - old))[0];
}

// The token to follow in the next text: the reader's choice, else the token followed now, else token 2
function keptToken(tokens) {
  const now = { word: page.shown.tokens[followed.token], place: followed.token };
  const first = tokens.findIndex((_, i) => i > 1 && i < tokens.length - 1);
  return (page.wish && find(page.wish, tokens)) ?? find(now, tokens) ?? Math.max(first, 0);
}

// Redraw everything that depends on the text, and follow `start` in it, if that is given
function showText(next, start = {}) {
  Object.assign(followed, { token: keptToken(next.tokens) }, start);
  page.shown = next;
  const { tokens } = next,
    palette = colours();
  fillTokens(next);
  heads.cells.forEach((row, layer) =>
    row.forEach((cell, head) => thumbnail(cell.firstChild, ofHead("attentions", layer, head), tokens.length, palette)),
  );
  fillSelect(
    by("token"),
    tokens.map((token, i) => `${i} ${token}`),
    chooseToken,
  );
  const all = { ...sizes, S: tokens.length };
  for (const shape of document.querySelectorAll("[data-shape]")) {
    const names = shape.dataset.shape.split(", ");
    shape.textContent = `(${names.join(", ")}) = ${names.map((name) => all[name]).join(" × ")}`;
  }
  follow({});
  if (isOwn && tour.at === null) drawPicture(); // a tour keeps the picture, and so its place on the page
}

// Draw the text that is shown in the picture at the top: it has a sentence of its own until the reader sends one. A new
// frame takes the place of the old one once it is drawn.
let isOwn = false,
  picture = document.querySelector("#opening iframe"),
  coming;
function drawPicture() {
  coming?.remove();
  const next = (coming = picture.cloneNode()),
    { tokens, attentions } = page.shown,
    { token, layer, head } = followed;
  next.style.display = ""; // a copy of a picture that the last coming frame had hidden
  const data = JSON.parse(picture.contentDocument.getElementById("data").textContent);
  const pieces = tokens.map((_, i) => i),
    first = { token, layer, head, mode: "pieces", both: false };
  const drawn = { pieces: { ids: [pieces], names: [tokens] }, words: wordsOf(tokens) };
  next.figure = {
    ...data,
    labels: [""],
    weights: [packed(attentions)],
    sizes: [tokens.length],
    drawn,
    first,
    models: false,
  };
  next.title = `Where the tokens of “${page.shown.texts[0]}” look`;
  next.className = "coming";
  next.onload = () => {
    picture.remove();
    next.className = "";
    picture = next;
    coming = next.onload = null;
    next.contentDocument.getElementById("details").textContent = ""; // it is about the first sentence
  };
  picture.before(next);
}

// Redraw everything that depends on the followed token, layer or head
function follow(choice) {
  Object.assign(followed, choice);
  const { token, layer, head } = followed,
    { tokens } = page.shown;
  for (const name of ["token", "layer", "head"]) by(name).value = followed[name];
  [...by("tokens").children].forEach((chip, i) =>
    set(chip, { "aria-checked": i === token, tabindex: i === token ? 0 : -1 }),
  );
  heads.show(null, (one, other) => one === layer && other === head);
  for (const text of document.querySelectorAll(".where")) text.textContent = place();
  for (const text of document.querySelectorAll(".layer")) text.textContent = layer;
  const scores = scoresOf(),
    weights = ofHead("attentions"),
    values = ofHead("values"),
    context = contextOf();
  const options = { chosen: token },
    limit = reach(values);
  drawings.embeddings.draw(tokens, ofLayer("hidden_states", 0), options);
  drawings.three.draw(rowsOfSum(), Float32Array.from(rowsOfEmbedding(token).flatMap((row) => [...row])), {});
  drawings.scores.draw(tokens, scores, { ...options, signed: true, limit: Math.max(...scores.map(Math.abs)) });
  drawings.weights.draw(tokens, weights, { ...options, signed: false, limit: 1 });
  drawings.values.draw(tokens, values, { ...options, limit, shares: rowOf(weights, token, tokens.length) });
  drawings.context.draw(tokens, context, { ...options, limit });
  drawings.attended.draw(tokens, ofLayer("attended", layer), options);
  drawings.output.draw(tokens, ofLayer("hidden_states", layer + 1), options);
  drawings.final.draw(tokens, ofLayer("hidden_states", sizes.L), options);
  tell(weights);
}

function chooseToken(token) {
  page.wish = { word: page.shown.tokens[token], place: token };
  follow({ token });
}

function chooseHead(choice) {
  page.choseHead = true;
  follow(choice);
}

// Put the numbers of the followed token into sentences
function tell(weights) {
  const { token, layer } = followed,
    row = [...rowOf(weights, token, page.shown.tokens.length)];
  const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a]);
  const largest = order.slice(0, 3).filter((i, rank) => rank === 0 || row[i] >= 0.01);
  const [most, ...others] = largest.map((i) => `${quotedName(i)} (${format(row[i])})`);
  by("looks").textContent =
    `${quotedName(token)} looks most at ${most}${others.length ? `, then at ${others.join(" and ")}` : ""}.`;
  const parts = largest.map((i) => `${format(row[i])} × the value of ${quotedName(i)}`).join(" + ");
  const rest = 1 - largest.reduce((sum, i) => sum + row[i], 0);
  by("mixture").textContent =
    `That of ${quotedName(token)} is ${parts}${rest > 0.005 ? ` + ${format(rest)} of the others` : ""}.`;
  const next = layer + 1 < sizes.L ? `It is what layer ${layer + 1} reads.` : "No layer follows.";
  by("onwards").textContent = next;
  by("moved").textContent =
    `From its embedding to here, ${quotedName(token)} has turned: the cosine between the two vectors is ` +
    `${format(turned(token)[sizes.L])}.`;
}

// Show a message; for a wrong input, as an error
function say(text, wrong = false) {
  by("status").textContent = text;
  by("status").className = wrong ? "wrong" : "";
}

const model = makeModel(
  by("worker").textContent,
  Object.fromEntries(Object.entries(DATA.files).map(([name, { path }]) => [name, new URL(path, location.href).href])),
);
let encode, tour;
let live = false; // whether the page follows the reader's typing: from the moment they load the model

async function prepare() {
  live = true;
  const total = DATA.files.runtime.size + DATA.files.encoder.size;
  const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
  const progress = (loaded) => {
    const part = `${megabytes(loaded)} of ${megabytes(total)} MB`,
      starts = loaded >= total;
    say(starts ? "The model is starting." : `The model is loading: ${part}.`);
    onButton(starts ? "Starting" : `Loading ${part}`, loaded / total);
  };
  try {
    if (!encode) {
      const response = await fetch(DATA.files.vocabulary.path);
      if (!response.ok) throw new Error(`${DATA.files.vocabulary.path} is not there (${response.status})`);
      encode = makeTokenizer(await response.text(), DATA.rules);
    }
    await model.load(progress);
    onButton("Send it through");
  } catch (error) {
    live = false; // try again only when the reader does
    onButton("Try again");
    throw error;
  }
}

// The button shows what it is doing: on a phone it is all that the window shows
function onButton(text, share = 1) {
  by("send").textContent = text;
  by("send").style.setProperty("--share", `${100 * share}%`);
}

class Complaint extends Error {} // a message to the reader about a text

// Reject a text that cannot be drawn: before the model loads, and again once its tokens are known
function examine(texts, tokens) {
  const { characters, tokens: most } = DATA.limits;
  if (texts.every((text) => !text.trim())) throw new Complaint("There is no text yet: type a sentence.");
  if (texts.some((text) => text.length > characters))
    throw new Complaint(`This text has more than ${characters} characters: shorten it.`);
  if (!tokens) return;
  if (tokens.every((token) => token === "[CLS]" || token === "[SEP]"))
    throw new Complaint("No token is left of this text: type a word.");
  if (tokens.length > most)
    throw new Complaint(`This text has ${tokens.length} tokens, and the page draws ${most} at most: shorten it.`);
}

// All outputs of the encoder for two texts, the second of which may be empty; undefined once `stale` returns true
async function through(texts, stale) {
  examine(texts);
  await prepare();
  if (stale()) return undefined;
  const input = encode(texts[0], texts[1].trim() ? texts[1] : null);
  examine(texts, input.tokens);
  const start = performance.now(),
    outputs = await model.run(input);
  return stale() ? undefined : { texts, ...input, ...outputs, seconds: (performance.now() - start) / 1000 };
}

const reason = (error) =>
  error instanceof Complaint
    ? error.message
    : `The model could not run here (${error.message}). Try again, or use another browser.`;

// Send the text in the boxes; after a request from there, show the picture at the top, which may be out of the window
async function send(upwards = false) {
  const turn = ++page.asked,
    texts = [by("first").value, by("second").value];
  try {
    const next = await through(texts, () => turn !== page.asked); // the reader may have gone on typing
    if (!next) return;
    isOwn = true;
    showText(next, upwards && !page.wish && !page.choseHead ? startOf(next) : {});
    if (upwards && by("opening").getBoundingClientRect().top < 0) by("opening").scrollIntoView();
    say(`${next.tokens.length} tokens, computed here in ${next.seconds.toFixed(2)} s.`);
  } catch (error) {
    say(reason(error), true);
  }
}

function start() {
  for (const text of document.querySelectorAll("[data-size]"))
    text.textContent = sizes[text.dataset.size].toLocaleString("en");
  fillSelect(by("layer"), range(sizes.L), (layer) => chooseHead({ layer }));
  fillSelect(by("head"), range(sizes.A), (head) => chooseHead({ head }));
  for (const [first, second] of DATA.examples) {
    const button = add(by("examples"), "button", { type: "button" }, [first, second].filter(Boolean).join(" / "));
    button.onclick = () => {
      by("first").value = first;
      by("second").value = second;
      send(true);
    };
  }
  by("about").textContent = "In each drawing of vectors, 1 % of the numbers lie beyond the scale.";
  by("first").value = page.saved.texts[0];
  if (location.protocol === "file:") {
    by("fields").disabled = true;
    by("promise").textContent =
      "This page was opened from a folder, and browsers do not let such a page load a model. " +
      "So it shows its saved sentence only. For your own, run python -m http.server --bind 127.0.0.1 -d site and " +
      "open http://127.0.0.1:8000/explorer.html.";
  }
  let pause;
  by("form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(pause);
    send(true);
  });
  by("form").addEventListener("input", () => {
    clearTimeout(pause);
    if (live) pause = setTimeout(() => send(), 300);
  });
  for (const media of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(media).addEventListener("change", () => showText(page.shown)); // with other colours
  }
  tour = makeTour(follow, showText, DATA.shown);
  showText(page.shown);
}

start();
