// The page: download Python and the model once, run the file in workers, a text in each, and show the answer.
const DATA = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
const source = by("source");
let crew = null; // the workers, once a run has started them
let downloads = null; // the promise of what the workers need
let aborter;
let turn = 0; // of a run; Stop begins a new one
const known = new Map(); // the vectors of texts, by version of the file
const saved = new Map(DATA.saved.texts.map((text, i) => [text, DATA.saved.each[i]])); // those that came with the page
const printed = new Map(); // by texts: what the last versions of the file printed

class Stopped extends Error {}

// Fetch a file as a stream, which counts what has arrived
async function fetched(name, arrived) {
  const response = await fetch(DATA.files[name].path, { signal: aborter.signal });
  if (!response.ok) throw new Error(`${DATA.files[name].path} is not there (${response.status})`);
  return response.body.pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        arrived(chunk.length);
        controller.enqueue(chunk);
      },
    }),
  );
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
    ...["program", "machine"].map((name) =>
      unpacked(name)
        .then((stream) => new Response(stream).arrayBuffer())
        .then(script),
    ),
  ]);
  return { runtime, library, model, program, machine };
}

function makeWorker() {
  const url = URL.createObjectURL(new Blob([by("worker").textContent], { type: "text/javascript" }));
  // a worker from a blob inherits the page's policy on what may be fetched
  const worker = new Worker(url, { type: "module" });
  let answer;
  const hand = {
    layers: 0,
    stop: () => {
      worker.terminate();
      answer?.reject(new Stopped());
    },
  };
  worker.onerror = (event) => answer?.reject(new Error(event.message ?? "a worker did not start"));
  worker.onmessage = ({ data: { layer, value, error } }) => {
    if (layer) {
      hand.layers++;
      showLayers();
    } else if (error === undefined) answer.resolve(value);
    else answer.reject(new Error(error));
  };
  const begin = (call, input) =>
    new Promise((resolve, reject) => {
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
  const hands = Array.from({ length: phone ? 1 : navigator.hardwareConcurrency < 4 ? 2 : 3 }, makeWorker);
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

// The vector of each text, from an earlier run of this version of the file, or, next to a text of the reader's, from
// the page
async function vectors(hands, code, texts) {
  if (!known.has(code)) known.set(code, new Map());
  const answers = known.get(code),
    isOwn = code === DATA.source && texts.some((text) => !saved.has(text));
  const came = isOwn ? texts.filter((text) => saved.has(text) && !answers.has(text)) : [];
  for (const text of came) answers.set(text, saved.get(text));
  const missing = [...new Set(texts)].filter((text) => !answers.has(text));
  computed = hands.slice(0, missing.length);
  const found = await Promise.all(
    missing.map((text, i) => hands[i % hands.length].ask("vector", { source: code, texts: [text] })),
  );
  computed = [];
  missing.forEach((text, i) => answers.set(text, found[i]));
  return { each: texts.map((text) => answers.get(text)), came: came.length };
}

const BOXES = ["first", "second", "third"].map(by);
const textsNow = () => BOXES.map((box) => box.value).filter((text, i) => i < 2 || text.trim());

async function run() {
  const mine = ++turn,
    code = source.value,
    texts = textsNow();
  const current = () => {
    if (mine !== turn) throw new Stopped();
  };
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
    const start = performance.now(),
      { each, came } = await vectors(hands, code, texts);
    doing("Comparing.", 1);
    const failed = each.find(({ error }) => error);
    const end =
      failed ?? (await hands[0].ask("finish", { source: code, texts, vectors: each.map(({ value }) => value) }));
    current();
    show(texts, each, end, code);
    const seconds = ((performance.now() - start) / 1000).toFixed(1),
      rest = came ? " The vectors of the other texts came with the page." : "";
    say(`${end.error ? "Stopped by an error after" : "Computed here in"} ${seconds} s.${rest}`);
    return !end.error;
  } catch (error) {
    if (mine !== turn || error instanceof Stopped) return;
    crew?.then((hands) => hands.forEach(({ stop }) => stop())).catch(() => 0);
    crew = null;
    say(
      `This page could not run Python (${error.message}). Check that the site is served completely, then press Run ` +
        "to try again.",
      true,
    );
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
  } catch {
    /* the download was stopped: the next run begins it again */
  }
}

function busy(on) {
  for (const button of [by("run"), ...document.querySelectorAll(".try")]) button.disabled = on;
  by("stop").disabled = !on;
  if (!on) doing("");
}

function say(text, wrong = false) {
  by("status").textContent = text;
  by("status").className = wrong ? "wrong" : "";
}

const list = (numbers) => numbers.map((number) => number.toFixed(4).replace("-", "−")).join(", ");

// What the file printed for these texts before, as numbers with a text: `0.44 hours go by quickly`
function showChange(texts, now, code) {
  const key = JSON.stringify(texts),
    versions = (printed.get(key) ?? []).filter((one) => one.code !== code);
  const numbers = (text) =>
    new Map([...text.matchAll(/^(-?\d\.\d\d) (.*)$/gm)].map(([, number, of]) => [of, number.replace("-", "−")]));
  const before = numbers(versions.at(-1)?.now ?? ""),
    after = numbers(now);
  const rows = [...after]
    .filter(([of]) => before.has(of))
    .map(([of, number]) =>
      make("tr", {}, make("th", { scope: "row" }, of), make("td", {}, `${before.get(of)} → ${number}`)),
    );
  by("change").hidden = !rows.length;
  by("change").tBodies[0].replaceChildren(...rows);
  printed.set(key, [...versions, { code, now }]);
}

function make(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function show(texts, each, { printed: last, error }, code) {
  const quoted = texts.map((text) => `"${text}"`).join(" ");
  const earlier = [...new Set(each)].map((one) => one.printed).join("");
  by("answer").hidden = Boolean(error) && !earlier && !last;
  by("printed").textContent =
    `$ python microbert.py ${quoted}\n${error && each.some((one) => one.error) ? earlier : earlier + last}`;
  by("change").hidden = true;
  if (!error) showChange(texts, last, code);
  by("meaning").hidden = Boolean(error);
  by("vectors").replaceChildren(
    ...each.flatMap(({ value }, i) => {
      if (!value) return [];
      const item = document.createElement("li");
      item.textContent = `“${texts[i]}” became ${value.length} numbers: ${list(value.slice(0, 4))}, …`;
      return [item];
    }),
  );
  by("error").hidden = !error;
  if (error || sort === "wrong") mark(error?.line);
  if (!error) return;
  if (error.line) reveal(error.line);
  by("message").textContent = error.message;
  by("where").textContent = error.line
    ? `In line ${error.line}${error.function ? `, in ${error.function}()` : ""}: ` +
      `${source.value.split("\n")[error.line - 1]?.trim() ?? ""}`
    : "";
  by("trace").textContent = error.trace;
}

// Number the lines, and mark one
let marked = null,
  sort; // the line of an error, or the one that an idea has changed
let mine = null; // the reader's version, after Reset
function mark(line, kind = "wrong") {
  marked = line ?? null;
  sort = kind;
  number();
}

// The file in colours, below the box in which it is edited
const PYTHON =
  /("""[\s\S]*?(?:"""|$)|f?"(?:\\.|[^"\\\n])*"?|f?'(?:\\.|[^'\\\n])*'?)|(#.*)|\b(and|as|class|def|elif|else|for|from|if|import|in|is|lambda|not|or|return|while|with|None|True|False)\b|\b(\d[\w.]*)/g;
function paint() {
  const parts = [],
    text = source.value;
  let from = 0;
  for (const found of text.matchAll(PYTHON)) {
    parts.push(
      text.slice(from, found.index),
      make("span", { className: ["text", "note", "word", "number"][found.slice(1).findIndex(Boolean)] }, found[0]),
    );
    from = found.index + found[0].length;
  }
  by("paint").replaceChildren(...parts, text.slice(from), "\n\n");
  scrolled();
}

function scrolled() {
  by("lines").scrollTop = by("paint").scrollTop = source.scrollTop;
  by("paint").scrollLeft = source.scrollLeft;
}

function number() {
  const count = source.value.split("\n").length;
  const numbers = Array.from({ length: count }, (_, i) => {
    const span = document.createElement("span");
    span.textContent = i + 1;
    span.className = i + 1 === marked ? sort : "";
    return span;
  });
  by("lines").replaceChildren(...numbers);
  paint();
  const same = source.value === DATA.source;
  by("reset").disabled = same && mine === null;
  by("reset").textContent = same && mine !== null ? "Bring my changes back" : "Reset: bring back the original";
  by("changed").textContent = same ? "" : "You have changed the file.";
}

function goTo(line) {
  const before =
      source.value
        .split("\n")
        .slice(0, line - 1)
        .join("\n").length +
      (line > 1),
    text = source.value.split("\n")[line - 1] ?? "";
  source.focus();
  source.setSelectionRange(before, before + text.length);
  reveal(line);
}

function reveal(line) {
  source.scrollTop = Math.max(0, ((line - 8) * source.scrollHeight) / source.value.split("\n").length);
  source.scrollLeft = 0;
}

// Bring the original back, or the reader's version if the original is shown; execCommand, which Ctrl+Z undoes, takes
// seconds
function reset() {
  [source.value, mine] = source.value === DATA.source ? [mine, null] : [DATA.source, source.value];
  mark(null);
}

// Change the line of an idea and run the file, first as it was, unless the page knows what that prints
async function tryIdea({ line, old, new: changed, texts }) {
  BOXES.forEach((box, i) => {
    box.value = texts[i] ?? "";
  });
  by("ask").scrollIntoView({ block: "nearest" });
  if (!printed.has(JSON.stringify(textsNow()))) {
    [source.value, mine] = [DATA.source, null];
    mark(null);
    if (!(await run())) return;
  }
  [source.value, mine] = [DATA.source.replace(old, () => changed), null];
  mark(line, "now");
  reveal(line);
  await run();
}

by("ideas").replaceChildren(
  ...DATA.ideas.map((idea) => {
    const button = make("button", { type: "button", className: "small try", onclick: () => tryIdea(idea) }, "Try it");
    const code = (text) => make("code", {}, text);
    return make(
      "li",
      {},
      `Line ${idea.line}: replace `,
      code(idea.old),
      " by ",
      code(idea.new),
      `. ${idea.asks} `,
      button,
    );
  }),
);

try {
  const theme = localStorage.getItem("theme"); // set by the site's light/dark switch
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  /* the browser blocks storage */
}
source.value = DATA.source;
number();
show(DATA.saved.texts, DATA.saved.each, DATA.saved.end, DATA.source);
say("Saved with the page. Change a text or a line, and press Run.");
source.addEventListener("input", () => mark(null));
source.addEventListener("scroll", scrolled);
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
  by("promise").textContent =
    "This page was opened from a folder, and browsers do not let such a page load Python. " +
    "Run python -m http.server --bind 127.0.0.1 -d site and open http://127.0.0.1:8000/microbert.html.";
}
