// The visit: see, guess, type, run. Python runs in a worker, and a sentence view draws what the reader's lines compute.

import { packed, wordsOf } from "../../explorer/numbers.js";
import { bytesOf, format } from "../../views/numbers.js";
import { add, by } from "../../views/elements.js";
import { diagnose, readNumbers } from "./diagnosis.js";
import "../../explorer/theme.js";

const DATA = JSON.parse(document.getElementById("data").textContent);
const LIMIT = 5000, // milliseconds of a check
  LONG = 30_000; // of a run of the whole model
const HEAD = ["dot", "softmax", "weights_of"]; // the parts that decide the ribbons
const FIRST = "weights_of",
  ORDER = [...HEAD, "average", "add", "norm", "encode", "pieces_of"];
const SERVER =
  "browsers do not let a page from a folder load it. Run python -m http.server --bind 127.0.0.1 -d site and open " +
  "http://127.0.0.1:8000/type_bert.html, or make the page with make page, which opens from a folder";
const box = by("body");

// Python, in a worker that can be ended at any time

let worker,
  waiting = new Map(), // what is to be done with the reply to each call, by the call's id
  files = null,
  isReady = false,
  started, // the promise that Python has
  model = null, // its bytes
  unpacking = null, // the promise that they are in Python's files
  timer;
const modelIsHere = /** @type {any} */ (Promise.withResolvers());
modelIsHere.promise.catch(() => 0); // whoever needs the model is told

// A file of Python as a stream: in this page, or next to it
async function take(name) {
  const inside = by(`file-${name}`);
  if (inside) {
    const bytes = bytesOf(inside.textContent);
    inside.remove();
    return new Response(bytes).body;
  }
  const response = await fetch(DATA.files[name]);
  if (!response.ok) throw new Error(`${DATA.files[name]} is not there (${response.status})`);
  return response.body;
}

const unpacked = async (name) => (await take(name)).pipeThrough(new DecompressionStream("gzip"));

// The address of a program. A worker of a page from a folder cannot import a blob, but it can import a data: address
async function script(name) {
  const blob = new Blob([await new Response(await unpacked(name)).arrayBuffer()], { type: "text/javascript" });
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });
}

async function download() {
  const wasm = { headers: { "Content-Type": "application/wasm" } };
  const [program, machine, library, runtime] = await Promise.all([
    script("program"),
    script("machine"),
    take("library").then((stream) => new Response(stream).arrayBuffer()),
    unpacked("runtime").then((stream) => WebAssembly.compileStreaming(new Response(stream, wasm))),
  ]);
  return { program, machine, library, runtime, lock: DATA.lock, files: DATA.python };
}

const ask = (call, input) =>
  new Promise((resolve, reject) => {
    const id = crypto.getRandomValues(new Uint32Array(2)).join(); // which no line of Python can guess
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, call, input });
  });

function giveUp(error) {
  for (const { reject } of waiting.values()) reject(error);
  waiting.clear();
}

function startPython() {
  const address = URL.createObjectURL(new Blob([by("worker").textContent], { type: "text/javascript" }));
  worker = new Worker(address);
  worker.onmessage = ({ data: { id, value, intact, error } }) => {
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve({ ...value, intact });
    else call?.reject(new Error(error));
  };
  worker.onerror = (event) => giveUp(new Error(event.message ?? "a worker did not start"));
  started = Promise.all([ask("start", files), ask("prepare", { source: DATA.source, head: DATA.head })]).then(() => {
    isReady = true;
    if (model) giveModel();
  });
  return started;
}

function giveModel() {
  unpacking = ask("model", model);
  const loaded = () => {
    by("loaded").textContent = "The model is loaded.";
    modelIsHere.resolve();
  };
  const failed = (error) => {
    if (error instanceof Stopped) return; // Python gets it when it starts again
    by("loaded").textContent = `The model did not load here: ${error.message}. Steps 1 to 3 work without it.`;
    modelIsHere.reject(error);
  };
  return unpacking.then(loaded, failed);
}

class Stopped extends Error {}

// End Python, whatever it does, and start it again from what is here
async function restart(why) {
  clearTimeout(timer);
  worker.terminate();
  isReady = false;
  by("ready").textContent = "Python is starting again.";
  giveUp(new Stopped(why));
  await startPython();
  tellReady();
}

// Ask for something that may never end, after what was asked before
let turn = Promise.resolve();
function tryIt(...asked) {
  const found = turn.then(() => tryNow(...asked));
  turn = found.catch(() => 0);
  return found;
}

async function tryNow(call, input, limit = LIMIT) {
  if (limit === LONG) await modelIsHere.promise;
  await started;
  await unpacking?.catch(() => 0); // which takes its own time
  timer = setTimeout(
    () => restart(`Your lines ran for ${limit / 1000} seconds and were stopped. Is there a loop without an end?`),
    limit,
  );
  by("stop").disabled = false;
  try {
    const found = await ask(call, input);
    clearTimeout(timer);
    if (found.intact) return found;
  } catch (error) {
    if (error instanceof Stopped) throw error;
  } finally {
    clearTimeout(timer);
    by("stop").disabled = true;
  }
  restart();
  throw new Stopped("Your lines changed Python itself, so it was started again. Write them without that.");
}

// The views

// Show the view in a frame, perhaps with data of its own, and resolve once it is drawn
function open(frame, data = undefined) {
  const drawn = new Promise((resolve) => {
    frame.onload = resolve;
  });
  frame.figure = data;
  frame.srcdoc = DATA.view;
  return drawn;
}
const parts = DATA.parts; // of each gap: the lines above it, ours, and those that its box begins with
const own = open(by("own")),
  draw = (weights, alone = false) => own.then(() => by("own").contentWindow.postMessage({ weights, alone }, "*"));
// The controls of the first view, which would answer the guess
const controls = () => by("view").contentDocument.querySelector(".controls");
const seen = open(by("view")).then(() => {
  controls().style.visibility = by("refuted").textContent ? "" : "hidden";
});

const IT = DATA.tokens[0].indexOf("it");
const weight = (all, text, word) => all[text][IT][DATA.tokens[text].indexOf(word)];

// The answer to a guess, in words that are made from the numbers
function refute(guess) {
  const words = [...by("guesses").children].map(({ value }) => value),
    row = DATA.official[1][IT];
  const most = words.reduce((a, b) => (weight(DATA.official, 1, b) > weight(DATA.official, 1, a) ? b : a));
  const each = words
    .filter((word) => word !== "narrow")
    .map((word) => {
      const [before, now] = [0, 1].map((text) => weight(DATA.official, text, word));
      return `“${word}” gets ${format(now)}, ${now > before ? "more" : "less"} than the ${format(before)} with “tired”`;
    });
  const top = DATA.tokens[1][row.indexOf(Math.max(...row))];
  const beyond =
    top === most
      ? ""
      : ` Still more, ${format(Math.max(...row))}, goes to ${top}, which is no word; many heads do that.`;
  return (
    `${guess === most ? "Yes" : "No"}: of the three, “${most}” gets the widest ribbon. ${each.join(", and ")}.${beyond} ` +
    "So the last word has changed where “it” looks, though this head does not simply find what “it” means. " +
    "Training has found the numbers from which a head starts. One line turns them into ribbons: you type it next."
  );
}

for (const button of by("guesses").children)
  button.onclick = () => {
    for (const other of by("guesses").children) other.setAttribute("aria-pressed", other === button);
    by("refuted").textContent = refute(button.value);
    seen.then(async () => {
      await open(by("view")); // the head and the word of the answer, whatever the reader has chosen meanwhile
      for (const choice of [...controls().querySelectorAll("input")].slice(1, 3)) choice.click(); // both sentences
    });
  };

const areShares = (rows) =>
  rows.every((row) => row.every((w) => w >= 0 && w <= 1) && row.reduce((a, b) => a + b) < 1.001);
const NO_SHARES = "These are not weights from 0 to 1 that sum to 1, so there are no ribbons to draw.";

// What a line does to the head: say it, and draw it if these are weights
function show(weights) {
  const all = weights.flat(2);
  const off = Math.max(
    ...weights.flatMap((text, t) => text.flatMap((row, i) => row.map((w, j) => Math.abs(w - DATA.official[t][i][j])))),
  );
  if (!areShares(weights.flat())) return NO_SHARES;
  draw(weights);
  const of = (text, word) => format(weight(weights, text, word));
  if (off < 1e-5)
    return (
      `The ribbons are what your lines compute: “it” gives “animal” ${of(0, "animal")} with “tired” and ` +
      `${of(1, "animal")} with “narrow”. All ${all.length} weights of this head agree with PyTorch's to within ${off.toExponential(0)}.`
    );
  const changes = weights[0][IT].map((w, i) => Math.abs(w - DATA.official[0][IT][i])),
    most = DATA.tokens[0][changes.indexOf(Math.max(...changes))];
  return (
    `The ribbons are what your lines compute, and the dashed lines are what BERT computes. “it” gives “${most}” ` +
    `${of(0, most)} instead of ${format(weight(DATA.official, 0, most))}.`
  );
}

// What lines outside this head do to the whole model
async function tryModel(bodies) {
  const { cosines, error } = await tryIt("embed", { bodies, texts: DATA.texts }, LONG);
  if (error) return unusable(error);
  const [first, ...others] = DATA.texts.map((text) => `“${text}”`);
  const list = (numbers) => numbers.map((number) => format(number)).join(" and ");
  return (
    `In the whole BERT, ${first} then has the cosines ${list(cosines)} with ${others.join(" and ")}. ` +
    `PyTorch's are ${list(DATA.cosines)}.`
  );
}

// The card

const typed = {}, // what stands in the box of each gap
  mine = {}, // the reader's right lines
  brought = {}, // lines of a link, which wait for a press
  given = new Set(); // the gaps whose answer was shown
let tried = {}, // the reader's last lines, if they run but are not right
  gap = FIRST,
  isAsked = false; // whether a line waits for Python

const template = (name) => by(`task-${name}`);
// The ribbons wait for the reader's own weights_of: its smaller steps alone do not draw them
const isDrawn = () => gap === FIRST || (HEAD.includes(gap) && FIRST in mine);
const INTROS = {
  missing:
    "Below, the same head runs in Python on the numbers that BERT has for both sentences. One line is missing, so " +
    "every token looks at all tokens alike. Write it.",
  drawn: "Below, the same head runs in Python on the numbers that BERT has for both sentences, with your lines in it.",
  apart: "Here is another part of the same program. Write it, and it is checked at once.",
};

function choose(name) {
  if (box.value) typed[gap] = box.value;
  box.value = "";
  gap = name;
  by("task-title").textContent = template(name).title;
  by("task").replaceChildren(template(name).content.cloneNode(true));
  by("drawn").hidden = !isDrawn();
  clear();
  by("next").hidden = true;
  fill();
  list();
}

const clear = () => {
  by("effect").textContent = by("verdict").textContent = by("printed").textContent = "";
};

// Fill the box, unless something was typed
function fill() {
  by("above").textContent = parts[gap].above.trimEnd();
  if (!box.value) put(typed[gap] ?? parts[gap].first);
  by("ours").disabled = !isReady;
}

function put(text) {
  box.value = text;
  grow();
}

// As many rows as the lines take, also where they wrap
const grow = () => {
  box.rows = 2;
  while (box.rows < 30 && box.scrollHeight > box.clientHeight) box.rows++;
};

function list() {
  by("intro").textContent = INTROS[gap === FIRST && !(FIRST in mine) ? "missing" : isDrawn() ? "drawn" : "apart"];
  by("gaps").replaceChildren(
    ...ORDER.map((name) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", value: name, textContent: `${name in mine ? "✓ " : ""}${name}` });
      button.setAttribute("aria-pressed", name === gap);
      return button;
    }),
  );
  const count = Object.keys(mine).length,
    hash = `#${new URLSearchParams(mine)}`;
  by("link").textContent = `${count} of ${ORDER.length} lines are yours`;
  by("link").href = hash;
  const kept = new URLSearchParams({ ...brought, ...mine }).toString();
  if (kept || isReady) history.replaceState(null, "", `#${kept}`);
  by("brought").hidden = !Object.keys(brought).length;
  by("brought").firstChild.textContent =
    `The address of this page brings lines for ${Object.keys(brought).join(", ")}. They have not run yet.`;
  const later = ORDER.slice(ORDER.indexOf(gap) + 1), // the first part after this one, then those before it
    next = [...later, ...ORDER].find((name) => name !== gap && !(name in mine));
  by("next").textContent = next ? `Next: ${next}` : "";
  by("next").value = next ?? "";
}

// What is neither right nor wrong, such as "Checking.", has a neutral colour
function say(text, kind = "") {
  by("verdict").textContent = text;
  by("verdict").className = kind;
  by("verdict").scrollIntoView({ block: "nearest" }); // a phone's keyboard may cover it
}

const isOurs = (name, body) => given.has(name) && body.trim() === parts[name].ours.trim();

async function check() {
  const name = gap,
    body = box.value;
  if (!isReady) {
    isAsked = true;
    return say("Python is still starting. Your line is checked as soon as it is ready.");
  }
  isAsked = false;
  by("check").disabled = true;
  say("Checking.");
  try {
    const found = await tryIt("check", { gap: name, body, mine });
    const where = found.line ? `Line ${found.line}: ` : "",
      message = found.message ? `${found.hint && " Python’s message: "}${found.message}.` : "";
    const whole = found.completed ?? body;
    delete brought[name];
    tried = found.runs && !found.right ? { [name]: whole } : {};
    if (found.right && !isOurs(name, whole)) mine[name] = whole;
    else if (found.right) delete mine[name];
    const whose = found.right && !(name in mine) ? "This is our line." : "Right. This line is yours now.";
    if (found.right && whole !== body && box.value === body) put(whole);
    const completed = whole === body ? "" : "A function needs return, so it was put in front of your last line.";
    list();
    keep();
    if (found.right) say([whose, found.hint, completed].filter(Boolean).join(" "), "right");
    else say(`${where}${found.hint}${message}`, "wrong");
    by("printed").textContent = found.printed ? `Printed in the check:\n${found.printed}` : "";
    by("next").hidden = !found.right || !by("next").value;
    by("looked").className = by("cosine").className = "old"; // they are about the lines before
    by("effect").textContent = await effect(name, whole, found);
    if (found.right && isDrawn()) reveal();
  } catch (error) {
    clear();
    say(error.message);
  } finally {
    by("check").disabled = false;
  }
}

// The ribbons of a right line come into the window, and a phone's keyboard leaves it
function reveal() {
  if (matchMedia("(pointer: coarse)").matches) box.blur();
  by("verdict").scrollIntoView({ block: "start" });
}

const unusable = (error) => `The model cannot run with these lines: ${error}.`;
async function effect(name, body, { runs, weights, error }) {
  if (!runs) return "";
  if (error) return unusable(error);
  if (HEAD.includes(name)) return isDrawn() ? show(weights) : "";
  return model ? tryModel({ ...mine, [name]: body }) : "";
}

by("card").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!by("check").disabled) check();
});
by("stop").onclick = () => restart("Stopped.");
by("ours").onclick = () => {
  given.add(gap);
  put(parts[gap].ours);
  check();
};
// A button with the name of a gap leads to its card
document.addEventListener("click", ({ target }) => {
  const { value, id } = target.closest?.("#gaps button, #task button, #next") ?? {};
  if (!value) return;
  choose(value);
  by("card").scrollIntoView({ block: "start" });
  box.focus({ preventScroll: true });
  if (id === "next") box.setSelectionRange(box.value.length, box.value.length);
});
box.addEventListener("input", () => {
  grow();
  by("verdict").className = "old"; // it is about the lines before
  if (!box.value.trim()) clear();
  keep();
});

// Lines, texts and what is the reader's outlive a reload of this tab
const TEXTS = ["sentence", "first", "second", "third"];
function keep() {
  const texts = TEXTS.map((id) => by(id).value);
  try {
    sessionStorage.setItem("kept", JSON.stringify({ drafts: { ...typed, [gap]: box.value }, texts, mine }));
  } catch {
    /* the browser blocks storage */
  }
}

function kept() {
  try {
    const found = JSON.parse(sessionStorage.getItem("kept"));
    return { drafts: found.drafts ?? {}, texts: found.texts ?? [], mine: found.mine ?? {} };
  } catch {
    return { drafts: {}, texts: [], mine: {} };
  }
}

// Enter checks a complete last line: a `return`, or an expression alone
function isComplete(text) {
  const line = text.split("\n").at(-1),
    open = text.replace(/[^([{]/g, "").length - text.replace(/[^)\]}]/g, "").length;
  const isExpression =
    text === line && !/^[\w\s,.[\]]+=[^=]/.test(line) && !/^(for|while|if|def|with|import) /.test(line);
  return open <= 0 && (/^\s*return\s+\S/.test(line) || (isExpression && /[^:\s]\s*$/.test(line)));
}
box.addEventListener("keydown", (event) => {
  if (!["Enter", "Backspace"].includes(event.key) || event.isComposing) return;
  const before = box.value.slice(0, box.selectionStart),
    isLast = !box.value.slice(box.selectionStart).trim();
  if (event.key === "Backspace") {
    // one step of indentation at a time
    if (!/(^|\n)( {4})+$/.test(before) || box.selectionEnd > before.length) return;
    event.preventDefault();
    box.setSelectionRange(before.length - 4, before.length);
    return void document.execCommand("delete");
  }
  event.preventDefault();
  if (event.ctrlKey || event.metaKey || (!event.shiftKey && isLast && isComplete(before))) {
    if (!by("check").disabled) check();
    return;
  }
  const line = before.split("\n").at(-1);
  document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`);
});

// The whole model, and the end

const lines = () => ({ ...mine, ...tried });

// Run the reader's lines, right or not; `said` is what is said of it. Throws an error in words.
async function runLines(call, input) {
  const bodies = lines(),
    found = await tryIt(call, { bodies, ...input }, LONG);
  if (found.error) throw new Error(unusable(found.error));
  const cut = found.cut.map((text) => `“${text.slice(0, 20)}…”`).join(" and ");
  const names = Object.keys(bodies).map((name) => (name in tried ? `${name} (not right yet)` : name));
  const said =
    `Computed in ${found.seconds.toFixed(1)} s with ` +
    (names.length ? `your ${names.join(", ")} in all layers and heads.` : "our lines: none is yours yet.") +
    (cut && ` Only the beginning of ${cut} was read: 62 tokens, which take a while.`);
  return { ...found, said };
}
// Run ours
async function runOurs(call, input) {
  const found = await tryIt(call, { bodies: {}, ...input }, LONG);
  if (found.error) throw new Error(unusable(found.error));
  return found;
}

// Answer a form in `output`, for texts that are all there
function onSubmit(form, output, empty, run) {
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    const texts = [...form.querySelectorAll("input")].map(({ value }) => value.trim());
    button.disabled = true;
    output.className = "";
    output.textContent = unpacking ? "Computing." : "The model is still loading. Then your text is computed.";
    try {
      if (!texts.every(Boolean)) throw new Error("Type a text first.");
      output.textContent = await run(texts);
    } catch (error) {
      empty();
      output.textContent = error.message;
    }
    button.disabled = false;
  });
  form.addEventListener("input", ({ target }) => {
    keep();
    output.className = "old"; // it is about the texts before
    if (target.value.trim()) return;
    empty();
    output.textContent = "";
  });
}

onSubmit(
  by("look"),
  by("looked"),
  () => {
    by("whole").hidden = true;
  },
  async ([text]) => {
    const hasLines = Object.keys(lines()).length > 0,
      { tokens, weights, said } = await runLines("look", { text });
    if (!areShares(weights)) throw new Error(NO_SHARES);
    await drawSentence(tokens, [weights]);
    if (!hasLines) return said;
    by("looked").textContent = `${said} Now with BERT’s own lines.`;
    const ours = await runOurs("look", { text });
    if (tokens.join() !== ours.tokens.join()) return `${said} Your tokens are not BERT’s: ${ours.tokens.join(" ")}.`;
    const differ = weights.some((row, i) => row.some((w, j) => Math.abs(w - ours.weights[i][j]) > 0.005));
    if (!differ) return `${said} BERT’s own lines give the same ribbons.`;
    await drawSentence(tokens, [weights, ours.weights]);
    return `${said} BERT’s own lines give other ribbons: both are drawn.`;
  },
);

// Draw a sentence by the reader's lines and, as a second side, by BERT's
function drawSentence(tokens, sides) {
  const twice = ({ ids, names }) => ({ ids: sides.map(() => ids[0]), names: sides.map(() => names[0]) });
  const pieces = { ids: [tokens.map((_, i) => i)], names: [tokens] },
    both = sides.length > 1;
  by("whole").hidden = false;
  const drawn = open(by("heads"), {
    labels: both ? ["your lines", "BERT"] : ["your sentence"],
    weights: sides.map((rows) => packed(rows.flat())),
    sizes: sides.map(() => tokens.length),
    drawn: { pieces: twice(pieces), words: twice(wordsOf(tokens)) },
    heads: 12,
    layers: [0, 1, 2, 3, 4, 5],
    first: { token: Math.max(1, tokens.indexOf("it")), layer: 3, head: 1, mode: "pieces", both },
    models: both,
  });
  return drawn.then(() => {
    by("heads").contentDocument.getElementById("details").textContent = "all 6 layers with 12 heads";
  });
}

onSubmit(
  by("run"),
  by("cosine"),
  () => by("near").replaceChildren(),
  async (texts) => {
    const yours = await runLines("embed", { texts }),
      ours = Object.keys(lines()).length ? await runOurs("embed", { texts }) : yours;
    const [one, other] = yours.cosines.map((cosine) => format(cosine)),
      theirs = ours.cosines.map((cosine) => format(cosine)).join(" and ");
    const nearer = yours.cosines[0] > yours.cosines[1] ? 1 : 2;
    by("near").replaceChildren();
    yours.cosines.forEach((cosine, i) => {
      const row = add(by("near"), "li", {}, `${format(cosine)} `);
      add(row, "meter", { min: 0, max: 1, value: cosine, "aria-label": texts[i + 1] });
      row.append(` ${texts[i + 1]}`);
    });
    const found = one === other ? "Both are as near" : `“${texts[nearer]}” is nearer`;
    return `${found}. ${yours.said}${theirs === `${one} and ${other}` ? "" : ` With our lines: ${theirs}.`}`;
  },
);

by("copy").onclick = async () => {
  try {
    await navigator.clipboard.writeText(by("link").href);
    by("copied").textContent = "Copied.";
  } catch {
    by("copied").textContent = "This browser does not let pages copy: copy the address of the link.";
  }
};

// A file of numbers: about 2 MB, and less than 10 as JSON
by("probe").href = URL.createObjectURL(new Blob([JSON.stringify(DATA.bugs.probe)], { type: "application/json" }));
by("file").onchange = async () => {
  const [file] = by("file").files;
  if (!file) return;
  try {
    if (file.size > 50e6) throw new Error("This file is too large: the states of the rows take 2 MB.");
    const found = readNumbers(file.name, new Uint8Array(await file.arrayBuffer()));
    by("diagnosis").textContent = diagnose(found, DATA.bugs);
  } catch (error) {
    by("diagnosis").textContent = error.message;
  }
};

// Lines of this tab, or those that a link brings, which wait for a press: each counts once it is checked
async function restore(lines) {
  for (const [name, body] of Object.entries(lines)) {
    try {
      if ((await tryIt("check", { gap: name, body, mine: {} })).right) mine[name] = body;
    } catch {
      /* Python is starting again, and the next line waits for it */
    }
    if (brought[name] === body) delete brought[name];
  }
  list();
  keep();
}

by("run-brought").onclick = () => {
  by("run-brought").disabled = true;
  restore({ ...brought });
};

function tellReady() {
  by("ready").textContent = "Python is ready.";
  fill();
  if (isAsked) check();
}

async function begin() {
  const { drafts, texts, mine: known } = kept();
  const isText = ([, body]) => typeof body === "string",
    linked = [...new URLSearchParams(location.hash.slice(1))].filter(([name]) => ORDER.includes(name));
  Object.assign(typed, Object.fromEntries(linked), Object.fromEntries(Object.entries(drafts).filter(isText)));
  TEXTS.forEach((id, i) => {
    by(id).value = texts[i] ?? by(id).value;
  });
  Object.assign(brought, Object.fromEntries(linked.filter(([name, body]) => known[name] !== body)));
  choose(FIRST);
  draw(
    DATA.tokens.map((all) => all.map(() => all.map(() => 1 / all.length))),
    true,
  );
  if (DATA.files && location.protocol === "file:") throw new Error(SERVER);
  if (document.readyState === "loading") await new Promise((go) => document.addEventListener("DOMContentLoaded", go));
  files = await download();
  await startPython();
  await restore(Object.fromEntries(Object.entries(known).filter(([name]) => ORDER.includes(name))));
  by("run-brought").disabled = false;
  tellReady();
  model = await new Response(await take("model")).arrayBuffer();
  if (isReady) await giveModel(); // else Python is starting again, and `startPython` gives it
}

begin().catch((error) => {
  by(isReady ? "loaded" : "ready").textContent =
    `${isReady ? "The model" : "Python"} did not start here: ${error.message}.`;
  if (isReady) modelIsHere.reject(error);
});
