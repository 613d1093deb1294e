// The page: what is shown of a text, which token, layer and head are followed, and what a reader types.
const DATA = JSON.parse(document.getElementById("data").textContent);
const { H, L, A } = DATA.sizes, D = H / A, SIZES = { ...DATA.sizes, D };
const by = (id) => document.getElementById(id);
const followed = { ...DATA.shown };
let wish = null; // the token that the reader chose: { word, place }
let keyWish = null; // and the token that it asks, if the reader chose one
const parts = {}; // what stands in files of its own: each may have text() for another text, follow() for another choice
const SAVED = { ...DATA.saved, ...unpackNumbers(DATA.saved.numbers, DATA.saved.half) };
let shown = SAVED;

// Numbers in base64, as float32 or, in `half` the room, as float16
function unpackNumbers(packed, half = {}) {
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
  const unpack = (numbers, make) => Object.entries(numbers).map(([name, text]) => [name, make(bytes(text))]);
  const singles = (buffer) => new Float32Array(buffer), halves = (buffer) => Float32Array.from(new Uint16Array(buffer), fromHalf);
  return Object.fromEntries([...unpack(packed, singles), ...unpack(half, halves)]);
}

function fromHalf(bits) {
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

// What one layer, or one head of it, gives to a text, which is the one that is shown if no other is named
function ofLayer(name, layer, text = shown) {
  const size = text.tokens.length * H;
  return text[name].subarray(layer * size, (layer + 1) * size);
}

function ofHead(name, layer = followed.layer, head = followed.head, text = shown) {
  const size = text.tokens.length * (name === "attentions" ? text.tokens.length : D), start = (layer * A + head) * size;
  return text[name].subarray(start, start + size);
}

// rows · columnsᵀ, or rows · matrix with `across`, as notebook 03 does it
function product(left, right, inner, across = false) {
  const rows = left.length / inner, columns = right.length / inner;
  return Float32Array.from({ length: rows * columns }, (_, cell) => {
    const row = Math.floor(cell / columns), column = cell % columns;
    let sum = 0;
    for (let i = 0; i < inner; i++) sum += left[row * inner + i] * right[across ? i * columns + column : column * inner + i];
    return sum;
  });
}

const scoresOf = () => product(ofHead("queries"), ofHead("keys"), D).map((score) => score / Math.sqrt(D));
const contextOf = () => product(ofHead("attentions"), ofHead("values"), shown.tokens.length, true);

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

// A token by its word, and by its place where the word stands more than once
const placed = (row, word = shown.tokens[row]) =>
  (shown.tokens.indexOf(shown.tokens[row]) === shown.tokens.lastIndexOf(shown.tokens[row]) ? word : `${word} at ${row}`);
const quoted = (row) => placed(row, `“${shown.tokens[row]}”`);
const place = () => `layer ${followed.layer}, head ${followed.head}`;
const number = (row, column, value) => `${placed(row)}, number ${column}: ${written(value, 3)}`;
const rows = (id, caption) => new Rows(by(id), caption, number, chooseToken);
const drawings = {
  embeddings: rows("embeddings", "Embeddings"),
  scores: new Matrix(by("scores"), "Attention scores", (row, column, value) =>
    `${placed(row)} → ${placed(column)}: q · k / √${D} = ${written(value)}`, chooseToken),
  weights: new Matrix(by("weights"), "Attention weights", (row, column, value) =>
    `${place()}: ${placed(row)} → ${placed(column)} ${written(value, 3)}`, chooseToken),
  values: rows("values", "Values v"),
  context: rows("context", "Context = weights · v"),
  attended: rows("attended", "After attention"),
  output: rows("output", "What the layer gives"),
  final: rows("final", "Last hidden state"),
};

// A field of buttons of which one is chosen; arrow keys move the choice
function makeChoice(host, buttons, columns, choose) {
  host.replaceChildren(...buttons);
  host.onclick = ({ target }) => buttons.includes(target.closest("button")) && choose(buttons.indexOf(target.closest("button")));
  host.onkeydown = (event) => {
    const at = buttons.indexOf(event.target), count = Math.ceil(buttons.length / columns);
    const next = at >= 0 && step(event.key, Math.floor(at / columns), at % columns, count, columns);
    if (!next) return;
    event.preventDefault();
    const index = next[0] * columns + next[1];
    choose(index);
    buttons[index].focus();
  };
}

function radio(label, ...inside) {
  const button = element("button", { type: "button", ariaLabel: label }, ...inside);
  button.setAttribute("role", "radio");
  return button;
}

const headName = (i) => `layer ${Math.floor(i / A)}, head ${i % A}`;
const followHead = (i) => follow({ layer: Math.floor(i / A), head: i % A });

// A square for each head of each layer, which is followed when it is chosen; `paint` draws its picture in the page's colours
function fillHeads(host, paint) {
  const squares = Array.from({ length: L * A }, (_, i) => radio(headName(i), element("canvas")));
  host.style.setProperty("--heads", A);
  makeChoice(host, squares, A, followHead);
  const palette = colours();
  squares.forEach((square, i) => {
    square.title = square.ariaLabel;
    paint(square.firstChild, i, palette);
  });
  const label = (text) => element("span", { ariaHidden: "true" }, String(text)); // the number of a head or a layer
  host.prepend(label(""), ...Array.from({ length: A }, (_, head) => label(head)));
  for (let layer = 0; layer < L; layer++) squares[layer * A].before(label(layer));
}

function mark(host, chosen) {
  [...host.querySelectorAll("button")].forEach((button, index) => {
    button.setAttribute("aria-checked", index === chosen);
    button.tabIndex = index === chosen ? 0 : -1;
  });
}

function fillSelect(select, texts, choose) {
  select.replaceChildren(...texts.map((text, value) => element("option", { value }, text)));
  select.onchange = () => choose(+select.value);
}

// Where a word stands now: at its old place if it is there, else where it is nearest; undefined where it is not
function find({ word, place: old }, tokens) {
  const places = tokens.flatMap((token, i) => (token === word ? [i] : []));
  return places.sort((a, b) => Math.abs(a - old) - Math.abs(b - old))[0];
}

// The token to follow in the next text: the one that the reader chose, else the one followed now, else token 2
function keptToken(tokens) {
  const now = { word: shown.tokens[followed.token], place: followed.token };
  const first = tokens.findIndex((_, i) => i > 1 && i < tokens.length - 1);
  return (wish && find(wish, tokens)) ?? find(now, tokens) ?? Math.max(first, 0);
}

// The token that the followed one asks: the one that the reader chose, else the one that it looks at most
function keptKey(weights) {
  const count = shown.tokens.length, row = weights.subarray(followed.token * count, (followed.token + 1) * count);
  return (keyWish && find(keyWish, shown.tokens)) ?? row.indexOf(Math.max(...row));
}

// Everything that changes with the text
function showText(next) {
  followed.token = keptToken(next.tokens);
  shown = next;
  const { tokens, ids, types } = shown;
  const chips = tokens.map((token, i) => {
    const chip = radio(`${placed(i)}, id ${ids[i]}`, element("b", {}, token), element("span", {}, String(ids[i])));
    chip.className = types[i] ? "second" : "first";
    return chip;
  });
  makeChoice(by("tokens"), chips, tokens.length, chooseToken);
  fillHeads(by("heads"), (canvas, i, palette) => thumbnail(canvas, ofHead("attentions", Math.floor(i / A), i % A), tokens.length, palette));
  fillSelect(by("token"), tokens.map((token, i) => `${i} ${token}`), chooseToken);
  const sizes = { ...SIZES, S: tokens.length };
  for (const shape of document.querySelectorAll("[data-shape]")) {
    const names = shape.dataset.shape.split(", ");
    shape.textContent = `(${names.join(", ")}) = ${names.map((name) => sizes[name]).join(" × ")}`;
  }
  for (const part of Object.values(parts)) part.text?.();
  follow({});
}

// Everything that changes with the token, layer or head that is followed
function follow(choice) {
  Object.assign(followed, choice);
  const { token, layer, head } = followed, { tokens } = shown;
  for (const name of ["token", "layer", "head"]) by(name).value = followed[name];
  mark(by("tokens"), token);
  mark(by("heads"), layer * A + head);
  for (const text of document.querySelectorAll(".where")) text.textContent = place();
  for (const text of document.querySelectorAll(".layer")) text.textContent = layer;
  const scores = scoresOf(), weights = ofHead("attentions"), values = ofHead("values"), context = contextOf();
  followed.key = keptKey(weights);
  const options = { chosen: token, picked: followed.key }, limit = reach(values);
  drawings.embeddings.draw(tokens, ofLayer("hidden_states", 0), options);
  drawings.scores.draw(tokens, scores, { ...options, signed: true, limit: Math.max(...scores.map(Math.abs)) });
  drawings.weights.draw(tokens, weights, { ...options, signed: false, limit: 1 });
  drawings.values.draw(tokens, values, { ...options, limit, shares: weights.subarray(token * tokens.length, (token + 1) * tokens.length) });
  drawings.context.draw(tokens, context, { ...options, limit });
  drawings.attended.draw(tokens, ofLayer("attended", layer), options);
  drawings.output.draw(tokens, ofLayer("hidden_states", layer + 1), options);
  drawings.final.draw(tokens, ofLayer("hidden_states", L), options);
  tell(weights);
  for (const part of Object.values(parts)) part.follow?.();
  changed();
}

// Something was chosen that a link should keep
const changed = () => parts.address?.changed();

// A token to follow and, from a cell of a matrix, the token that it asks
function chooseToken(token, key) {
  const named = (place) => ({ word: shown.tokens[place], place });
  wish = named(token);
  keyWish = key === undefined ? null : named(key);
  if (key !== undefined) by("one-score").open = true; // where the chosen cell is explained
  follow({ token });
}

// The numbers of the token that is followed, in sentences
function tell(weights) {
  const { token, layer } = followed, count = shown.tokens.length;
  const row = [...weights.subarray(token * count, (token + 1) * count)];
  const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a]);
  const largest = order.slice(0, 3).filter((i, rank) => rank === 0 || row[i] >= 0.01);
  const [most, ...others] = largest.map((i) => `${quoted(i)} (${written(row[i])})`);
  by("looks").textContent = `${quoted(token)} looks most at ${most}${others.length ? `, then at ${others.join(" and ")}` : ""}.`;
  const parts = largest.map((i) => `${written(row[i])} × the value of ${quoted(i)}`).join(" + ");
  const rest = 1 - largest.reduce((sum, i) => sum + row[i], 0);
  by("mixture").textContent = `That of ${quoted(token)} is ${parts}${rest > 0.005 ? ` + ${written(rest)} of the others` : ""}.`;
  const vector = (depth) => ofLayer("hidden_states", depth).subarray(token * H, (token + 1) * H);
  const next = layer + 1 < L ? `It is what layer ${layer + 1} reads.` : "No layer follows.";
  by("onwards").textContent = next;
  by("moved").textContent = `From its embedding to here, ${quoted(token)} has turned: the cosine between the two vectors is ${written(cosine(vector(0), vector(L)))}.`;
}

// A reader's own text

function say(text, wrong = false, status = by("status")) {
  status.textContent = text;
  status.className = wrong ? "wrong" : "";
}

const model = makeModel(by("worker").textContent, Object.fromEntries(
  Object.entries(DATA.files).map(([name, { path }]) => [name, new URL(path, location.href).href])));
let encode, asked = 0;
let live = false; // whether typing is answered, which it is from the moment that the reader asks for the model

async function prepare(tell) {
  live = true;
  const total = DATA.files.runtime.size + DATA.files.encoder.size, bar = by("progress");
  const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
  const progress = (loaded) => {
    bar.value = loaded / total;
    tell(loaded < total ? `The model is loading: ${megabytes(loaded)} of ${megabytes(total)} MB.` : "The model is starting.");
  };
  bar.hidden = false;
  try {
    if (!encode) {
      const response = await fetch(DATA.files.vocabulary.path);
      if (!response.ok) throw new Error(`${DATA.files.vocabulary.path} is not there (${response.status})`);
      encode = makeTokenizer(await response.text(), DATA.rules);
    }
    await model.load(progress);
  } catch (error) {
    live = false; // the next try is the reader's
    throw error;
  } finally {
    bar.hidden = true;
  }
}

class Complaint extends Error {} // about a text, in words for its reader

// Complains of a text that cannot be drawn, before the model is asked for and when its tokens are known
function examine(texts, tokens) {
  const { characters, tokens: most } = DATA.limits;
  if (texts.every((text) => !text.trim())) throw new Complaint("There is no text yet: type a sentence.");
  if (texts.some((text) => text.length > characters)) throw new Complaint(`This text has more than ${characters} characters: shorten it.`);
  if (!tokens) return;
  if (tokens.every((token) => token === "[CLS]" || token === "[SEP]")) throw new Complaint("No token is left of this text: type a word.");
  if (tokens.length > most) throw new Complaint(`This text has ${tokens.length} tokens, and the page draws ${most} at most: shorten it.`);
}

// Everything that the encoder gives for two texts, of which the second may be empty; nothing once `stale` says so
async function through(texts, { tell = say, stale = () => false } = {}) {
  examine(texts);
  if (by("fields").disabled) throw new Complaint("From a folder this page cannot load the model: what to do stands at its top.");
  await prepare(tell);
  if (stale()) return undefined;
  const input = encode(texts[0], texts[1].trim() ? texts[1] : null);
  examine(texts, input.tokens);
  const start = performance.now(), outputs = await model.run(input);
  return stale() ? undefined : { texts, ...input, ...outputs, seconds: (performance.now() - start) / 1000 };
}

const reason = (error) => (error instanceof Complaint ? error.message : `The model could not run here (${error.message}). Try again, or take another browser.`);

async function send() {
  const turn = ++asked, texts = [by("first").value, by("second").value];
  try {
    const next = await through(texts, { stale: () => turn !== asked }); // the reader may have typed on
    if (!next) return;
    showText(next);
    say(`${next.tokens.length} tokens, computed here in ${next.seconds.toFixed(2)} s.`);
  } catch (error) {
    say(reason(error), true);
  }
}

function start() {
  for (const text of document.querySelectorAll("[data-size]")) text.textContent = SIZES[text.dataset.size].toLocaleString("en");
  fillSelect(by("layer"), Array.from({ length: L }, (_, i) => i), (layer) => follow({ layer }));
  fillSelect(by("head"), Array.from({ length: A }, (_, i) => i), (head) => follow({ head }));
  const examples = DATA.examples.map(([first, second]) => {
    const button = element("button", { type: "button" }, [first, second].filter(Boolean).join(" / "));
    button.onclick = () => {
      by("first").value = first;
      by("second").value = second;
      send();
    };
    return button;
  });
  by("examples").append(...examples);
  by("about").textContent = "One number in a hundred of the vectors lies beyond its scale.";
  by("first").value = SAVED.texts[0];
  if (location.protocol === "file:") {
    by("fields").disabled = true;
    by("promise").textContent = "This page was opened from a folder, from which browsers let no page read a model. So it shows its saved sentence. For your own, run python -m http.server --bind 127.0.0.1 -d site and open http://127.0.0.1:8000/explorer.html.";
  }
  let pause;
  by("form").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(pause);
    send();
  });
  by("form").addEventListener("input", () => {
    clearTimeout(pause);
    if (live) pause = setTimeout(send, 300);
  });
  for (const media of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(media).addEventListener("change", () => showText(shown)); // in the colours of the screen, or of paper
  }
  Object.assign(parts, { score: makeOneScore(), scale: makeScale(), sums: makeSums(), flow: makeFlow(), pair: makePair(), ending: makeEnding() });
  Object.assign(parts, makeGuesses(), { tour: makeTour(), address: makeAddress() });
  showText(shown);
  parts.address.open();
}

try {
  const theme = localStorage.getItem("theme"); // the site's switch
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* a browser that keeps nothing */ }
start();
