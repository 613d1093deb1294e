// The page: download Python and the model once, run the file in two workers, one for each text, and show the answer.
const DATA = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
const source = by("source");
let crew = null; // the workers, once a run has started them
let downloads = null; // the promise of what the workers need
let aborter;
let turn = 0; // of a run; Stop begins a new one
let known = { source: "", answers: new Map() }; // the vectors of texts, for this version of the file

class Stopped extends Error {}

// Fetch a file as a stream, which counts what has arrived
async function fetched(name, arrived) {
  const response = await fetch(DATA.files[name].path, { signal: aborter.signal });
  if (!response.ok) throw new Error(`${DATA.files[name].path} is not there (${response.status})`);
  return response.body.pipeThrough(new TransformStream({
    transform(chunk, controller) {
      arrived(chunk.length);
      controller.enqueue(chunk);
    },
  }));
}

async function download() {
  aborter = new AbortController();
  const total = Object.values(DATA.files).reduce((sum, { size }) => sum + size, 0);
  let loaded = 0;
  const arrived = (bytes) => {
    loaded += bytes;
    doing(`Downloading: ${megabytes(loaded)} of ${megabytes(total)} MB.`, loaded / total);
  };
  const unpacked = async (name) => (await fetched(name, arrived)).pipeThrough(new DecompressionStream("gzip"));
  const wasm = { headers: { "Content-Type": "application/wasm" } };
  const script = (buffer) => URL.createObjectURL(new Blob([buffer], { type: "text/javascript" }));
  const [runtime, library, model, program, machine] = await Promise.all([
    unpacked("runtime").then((stream) => WebAssembly.compileStreaming(new Response(stream, wasm))),
    fetched("library", arrived).then((stream) => new Response(stream).arrayBuffer()),
    unpacked("model").then((stream) => new Response(stream).arrayBuffer()),
    ...["program", "machine"].map((name) => unpacked(name).then((stream) => new Response(stream).arrayBuffer()).then(script)),
  ]);
  return { runtime, library, model, program, machine };
}

function makeWorker() {
  const url = URL.createObjectURL(new Blob([by("worker").textContent], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" }); // a worker from a blob inherits the page's policy on what may be fetched
  let answer;
  const hand = { layers: 0, stop: () => { worker.terminate(); answer?.reject(new Stopped()); } };
  worker.onerror = (event) => answer?.reject(new Error(event.message ?? "a worker did not start"));
  worker.onmessage = ({ data: { layer, value, error } }) => {
    if (layer) {
      hand.layers++;
      showLayers();
    } else if (error === undefined) answer.resolve(value);
    else answer.reject(new Error(error));
  };
  const begin = (call, input) => new Promise((resolve, reject) => {
    answer = { resolve, reject };
    hand.layers = 0;
    hand.text = input.texts?.[0];
    worker.postMessage({ call, input: { ...input, folder: "/model" } });
  });
  let last = Promise.resolve();
  hand.ask = (call, input) => (last = last.catch(() => 0).then(() => begin(call, input))); // one after the other
  return hand;
}

// Start Python in both workers, after the download if this is the first time
async function makeCrew() {
  downloads ??= download().catch((error) => {
    downloads = null; // so that the reader can try again
    throw error;
  });
  const files = await downloads;
  const phone = matchMedia("(pointer: coarse)").matches; // with little memory
  const hands = phone ? [makeWorker()] : [makeWorker(), makeWorker()];
  const input = { ...files, lock: DATA.lock, runner: DATA.runner };
  hands.ready = Promise.all(hands.map((hand) => hand.ask("start", input)));
  hands.ready.catch(() => 0); // reported where it is awaited
  return hands;
}

function doing(text, share) {
  by("doing").textContent = text;
  by("progress").hidden = share === undefined;
  by("progress").value = share ?? 0;
}

let computed = []; // the workers that compute a vector now
function showLayers() {
  if (!computed.length) return;
  const layer = (hand) => Math.max(1, Math.min(hand.layers, DATA.layers));
  const parts = computed.map((hand) => `layer ${layer(hand)} of ${DATA.layers} for “${hand.text}”`);
  const sum = computed.reduce((total, hand) => total + hand.layers, 0);
  doing(`Computing ${parts.join(", ")}.`, Math.min(1, sum / computed.length / DATA.layers));
}

// The vector of each text, from the last run if neither file nor text has changed
async function vectors(hands, code, texts) {
  if (known.source !== code) known = { source: code, answers: new Map() };
  const { answers } = known;
  const missing = [...new Set(texts)].filter((text) => !answers.has(text));
  computed = hands.slice(0, missing.length);
  const found = await Promise.all(missing.map((text, i) => hands[i % hands.length].ask("vector", { source: code, texts: [text] })));
  computed = [];
  missing.forEach((text, i) => answers.set(text, found[i]));
  return texts.map((text) => answers.get(text));
}

async function run() {
  const mine = ++turn, code = source.value, texts = [by("first").value, by("second").value];
  const current = () => { if (mine !== turn) throw new Stopped(); };
  busy(true);
  say("");
  try {
    crew ??= makeCrew();
    const hands = await crew;
    current();
    if (!hands.started) doing("Starting Python.", 1);
    await hands.ready;
    hands.started = true;
    current();
    doing("Reading the file.", 0);
    const start = performance.now(), each = await vectors(hands, code, texts);
    doing("Comparing.", 1);
    const failed = each.find(({ error }) => error);
    const end = failed ?? await hands[0].ask("finish", { source: code, texts, vectors: each.map(({ value }) => value) });
    current();
    show(texts, each, end);
    say(`${end.error ? "Stopped by an error after" : "Computed here in"} ${((performance.now() - start) / 1000).toFixed(1)} s.`);
  } catch (error) {
    if (mine !== turn || error instanceof Stopped) return;
    crew?.then((hands) => hands.forEach(({ stop }) => stop())).catch(() => 0);
    crew = null;
    say(`This page could not run Python (${error.message}). Check that the site is served completely, then press Run to try again.`, true);
  } finally {
    if (mine === turn) busy(false);
  }
}

// Python cannot be interrupted from outside: end both workers, and start new ones with what is already here
async function stop() {
  turn++;
  aborter?.abort(); // has no effect on a complete download
  const old = crew;
  crew = null;
  computed = [];
  busy(false);
  say("Stopped.");
  try {
    (await old).forEach((hand) => hand.stop());
    crew ??= makeCrew();
  } catch { /* the download was stopped: the next run begins it again */ }
}

function busy(on) {
  by("run").disabled = on;
  by("stop").disabled = !on;
  if (!on) doing("");
}

function say(text, wrong = false) {
  by("status").textContent = text;
  by("status").className = wrong ? "wrong" : "";
}

const list = (numbers) => numbers.map((number) => number.toFixed(4).replace("-", "−")).join(", ");

function show(texts, each, { printed, error }) {
  const quoted = texts.map((text) => `"${text}"`).join(" ");
  const earlier = [...new Set(each)].map((one) => one.printed).join("");
  by("answer").hidden = Boolean(error) && !earlier && !printed;
  by("printed").textContent = `$ python microbert.py ${quoted}\n${error && each.some((one) => one.error) ? earlier : earlier + printed}`;
  by("meaning").hidden = Boolean(error);
  by("vectors").replaceChildren(...each.flatMap(({ value }, i) => {
    if (!value) return [];
    const item = document.createElement("li");
    item.textContent = `“${texts[i]}” became ${value.length} numbers: ${list(value.slice(0, 4))}, …`;
    return [item];
  }));
  by("error").hidden = !error;
  mark(error?.line);
  if (!error) return;
  if (error.line) reveal(error.line);
  by("message").textContent = error.message;
  by("where").textContent = error.line ? `In line ${error.line}${error.function ? `, in ${error.function}()` : ""}: ${source.value.split("\n")[error.line - 1]?.trim() ?? ""}` : "";
  by("trace").textContent = error.trace;
}

// Number the lines, and mark one
let wrong = null;
let mine = null; // the reader's version, after Reset
function mark(line) {
  wrong = line ?? null;
  number();
}

function number() {
  const count = source.value.split("\n").length;
  const numbers = Array.from({ length: count }, (_, i) => {
    const span = document.createElement("span");
    span.textContent = i + 1;
    span.className = i + 1 === wrong ? "wrong" : "";
    return span;
  });
  by("lines").replaceChildren(...numbers);
  by("lines").scrollTop = source.scrollTop;
  const same = source.value === DATA.source;
  by("reset").disabled = same && mine === null;
  by("reset").textContent = same && mine !== null ? "Bring my changes back" : "Reset: bring back the original";
  by("changed").textContent = same ? "" : "You have changed the file.";
}

function goTo(line) {
  const before = source.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1), text = source.value.split("\n")[line - 1] ?? "";
  source.focus();
  source.setSelectionRange(before, before + text.length);
  reveal(line);
}

function reveal(line) {
  source.scrollTop = Math.max(0, (line - 8) * source.scrollHeight / source.value.split("\n").length);
  source.scrollLeft = 0;
}

// Bring the original back, or the reader's version if the original is shown; execCommand, which Ctrl+Z undoes, takes seconds
function reset() {
  [source.value, mine] = source.value === DATA.source ? [mine, null] : [DATA.source, source.value];
  mark(null);
}

try {
  const theme = localStorage.getItem("theme"); // set by the site's light/dark switch
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* the browser blocks storage */ }
source.value = DATA.source;
number();
source.addEventListener("input", () => mark(null));
source.addEventListener("scroll", () => { by("lines").scrollTop = source.scrollTop; });
source.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) {
    if (!by("run").disabled) run();
    return;
  }
  const line = source.value.slice(0, source.selectionStart).split("\n").at(-1); // the next line begins below it
  document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`);
});
by("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!by("run").disabled) run();
});
by("stop").onclick = stop;
by("reset").onclick = reset;
by("go").onclick = () => goTo(DATA.line);
if (location.protocol === "file:") {
  by("fields").disabled = true;
  by("promise").textContent = "This page was opened from a folder, and browsers do not let such a page load Python. Run python -m http.server --bind 127.0.0.1 -d site and open http://127.0.0.1:8000/microbert.html.";
}
