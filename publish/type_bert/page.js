// The visit: see, guess, type, run. Python runs in a worker, and a sentence view draws what the reader's lines compute.

import { bytesOf, format } from "../../views/numbers.js";
import { by } from "../../views/elements.js";
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
  packed = null, // the model
  unpacking = null, // the promise that it is in Python's files
  timer;

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
  if (DATA.files) return URL.createObjectURL(blob);
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

async function startPython() {
  const address = URL.createObjectURL(new Blob([by("worker").textContent], { type: "text/javascript" }));
  worker = new Worker(address, { type: DATA.files ? "module" : "classic" });
  worker.onmessage = ({ data: { id, value, error } }) => {
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  };
  worker.onerror = (event) => giveUp(new Error(event.message ?? "a worker did not start"));
  await Promise.all([ask("start", files), ask("prepare", { source: DATA.source, head: DATA.head })]);
  isReady = true;
  if (packed) giveModel();
}

const giveModel = () => {
  unpacking = ask("model", packed);
  const loaded = () => {
    by("loaded").textContent = "The model is loaded.";
    by("embed").disabled = false;
  };
  return unpacking.then(loaded, (error) => {
    if (!(error instanceof Stopped)) throw error; // Python was ended meanwhile, and gets the model when it starts again
  });
};

class Stopped extends Error {}

// End Python, whatever it does, and start it again from what is here
async function restart(why) {
  clearTimeout(timer);
  worker.terminate();
  isReady = false;
  giveUp(new Stopped(why));
  await startPython();
  tellReady();
}

// Ask for something that may never end
async function tryIt(call, input, limit = LIMIT) {
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

// Show the view in a frame, and resolve once it is drawn
function open(frame) {
  const drawn = new Promise((resolve) => {
    frame.onload = resolve;
  });
  if (DATA.files) frame.src = DATA.view;
  else frame.srcdoc = DATA.view;
  return drawn;
}
const parts = DATA.parts; // of each gap: the lines above it, ours, and those that its box begins with
const own = open(by("own")),
  draw = (weights) => own.then(() => by("own").contentWindow.postMessage({ weights }, "*"));
// The controls of the first view, which would answer the guess. From a folder, the view of the site is out of reach
const controls = () => by("view").contentDocument?.querySelector(".controls");
const seen = open(by("view")).then(() => {
  if (controls()) controls().style.visibility = by("refuted").textContent ? "" : "hidden";
});

const IT = DATA.tokens[0].indexOf("it");
const weight = (all, text, word) => all[text][IT][DATA.tokens[text].indexOf(word)];

// The answer to a guess, in words that are made from the numbers
function refute(guess) {
  const words = [...by("guesses").children].map(({ value }) => value),
    row = DATA.official[1][IT];
  const most = words.reduce((a, b) => (weight(DATA.official, 1, b) > weight(DATA.official, 1, a) ? b : a));
  const each = words
    .filter((word) => word !== "wide")
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
      if (!controls()) return;
      await open(by("view")); // the head and the word of the answer, whatever the reader has chosen meanwhile
      for (const choice of [...controls().querySelectorAll("input")].slice(1, 3)) choice.click(); // both sentences
    });
  };

// What a line does to the head: say it, and draw it if these are weights
function show(weights) {
  const all = weights.flat(2);
  const off = Math.max(
    ...weights.flatMap((text, t) => text.flatMap((row, i) => row.map((w, j) => Math.abs(w - DATA.official[t][i][j])))),
  );
  const drawable = weights
    .flat()
    .every((row) => row.every((w) => w >= 0 && w <= 1) && row.reduce((a, b) => a + b) < 1.001);
  if (!drawable) return "These are not weights from 0 to 1 that sum to 1, so there are no ribbons to draw.";
  draw(weights);
  const of = (text, word) => format(weight(weights, text, word));
  if (off < 1e-5)
    return (
      `The ribbons are what your lines compute: “it” gives “animal” ${of(0, "animal")} with “tired” and ` +
      `${of(1, "animal")} with “wide”. All ${all.length} weights agree with PyTorch's to within ${off.toExponential(0)}.`
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
  given = new Set(); // the gaps whose answer was shown
let gap = FIRST,
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
  by("effect").textContent = by("verdict").textContent = "";
  by("next").hidden = true;
  fill();
  list();
}

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
  if (count || isReady) history.replaceState(null, "", hash); // before that, it may hold the lines of a link
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
    if (found.right && !isOurs(name, body)) mine[name] = body;
    else if (found.right) delete mine[name];
    const whose =
      found.right && !(name in mine)
        ? "This is our line."
        : `Right. This line is yours now${DATA.files ? ", and step 4 runs the whole BERT with it" : ""}.`;
    list();
    say(found.right ? `${whose} ${found.hint}` : `${where}${found.hint}${message}`, found.right ? "right" : "wrong");
    by("next").hidden = !found.right || !by("next").value;
    by("effect").textContent = await effect(name, body, found);
  } catch (error) {
    say(error.message);
  } finally {
    by("check").disabled = false;
  }
}

const unusable = (error) => `The model cannot run with these lines: ${error}.`;
async function effect(name, body, { runs, weights, error }) {
  if (!runs) return "";
  if (error) return unusable(error);
  if (HEAD.includes(name)) return isDrawn() ? show(weights) : "";
  return by("embed").disabled ? "" : tryModel({ ...mine, [name]: body });
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
  keep();
});

// Drafts outlive a reload of this tab
function keep() {
  try {
    sessionStorage.setItem("drafts", JSON.stringify({ ...typed, [gap]: box.value }));
  } catch {
    /* the browser blocks storage */
  }
}

function drafts() {
  try {
    return JSON.parse(sessionStorage.getItem("drafts")) ?? {};
  } catch {
    return {};
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

by("run").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (by("embed").disabled) return;
  const texts = [by("first").value, by("second").value],
    names = Object.keys(mine);
  by("embed").disabled = true;
  by("cosine").textContent = "Computing.";
  try {
    const yours = await tryIt("embed", { bodies: mine, texts }, LONG),
      ours = await tryIt("embed", { bodies: {}, texts }, LONG);
    if (yours.error ?? ours.error) throw new Error(unusable(yours.error ?? ours.error));
    const [[cosine], [other]] = [yours.cosines, ours.cosines];
    by("cosine").textContent =
      `The cosine is ${format(cosine)}, computed in ${yours.seconds.toFixed(1)} s with ` +
      (names.length
        ? `your ${names.join(", ")} in all layers. With our lines it is ${format(other)}.`
        : "our lines: none is yours yet.");
  } catch (error) {
    by("cosine").textContent = error.message;
  }
  by("embed").disabled = false;
});

by("copy").onclick = async () => {
  try {
    await navigator.clipboard.writeText(by("link").href);
    by("copied").textContent = "Copied.";
  } catch {
    by("copied").textContent = "This browser does not let pages copy: copy the address of the link.";
  }
};

// Lines that a link brings: each counts once it is checked
async function restore(linked) {
  for (const [name, body] of linked) {
    try {
      if ((await tryIt("check", { gap: name, body, mine: {} })).right) mine[name] = body;
    } catch {
      return; // Python is starting again
    }
  }
  list();
}

function tellReady() {
  by("ready").textContent = "Python is ready.";
  fill();
  if (isAsked) check();
}

async function begin() {
  const linked = [...new URLSearchParams(location.hash.slice(1))].filter(([name]) => ORDER.includes(name));
  Object.assign(typed, Object.fromEntries(linked), drafts());
  choose(FIRST);
  draw(DATA.tokens.map((all) => all.map(() => all.map(() => 1 / all.length))));
  if (DATA.files && location.protocol === "file:") throw new Error(SERVER);
  if (document.readyState === "loading") await new Promise((go) => document.addEventListener("DOMContentLoaded", go));
  files = await download();
  await startPython();
  await restore(linked);
  tellReady();
  if (!DATA.files) return;
  packed = await new Response(await unpacked("model")).arrayBuffer();
  if (isReady) await giveModel(); // else Python is starting again, and `startPython` gives it
}

begin().catch((error) => {
  by("ready").textContent = `Python did not start here: ${error.message}.`;
});
