// Runs Python in a worker: `start` once, `model` once the weights are there, else the functions of runner.py.
let python,
  answer, // calls a function of runner.py
  isIntact = () => true; // whether a reader's lines have changed Python, or what judges them
// A page from a folder can start classic workers only. Pyodide would take one by importScripts, which it must not find.
self.importScripts = () => {
  throw new TypeError();
};

// Unpack the model into the files that microbert.py reads: build.py describes the format.
function unpack(packed) {
  const length = new DataView(packed).getUint32(0, true);
  const { files, table } = JSON.parse(new TextDecoder().decode(new Uint8Array(packed, 4, length)));
  const line = JSON.stringify(table),
    names = new TextEncoder().encode(line + " ".repeat(-line.length & 3)); // for Float32Array
  const tensors = Object.values(table),
    size = Math.max(...tensors.map(({ data_offsets: [, end] }) => end));
  const file = new Uint8Array(8 + names.length + size);
  new DataView(file.buffer).setUint32(0, names.length, true);
  file.set(names, 8);
  const numbers = new Float32Array(file.buffer, 8 + names.length);
  let from = 4 + length;
  const take = (Type, count) => new Type(packed.slice(from, (from += count * Type.BYTES_PER_ELEMENT)));
  for (const {
    shape,
    data_offsets: [start, end],
  } of tensors) {
    const out = numbers.subarray(start / 4, end / 4);
    if (shape.length < 2) {
      out.set(take(Float32Array, out.length));
      continue;
    }
    const [rows, columns] = shape,
      scales = take(Float32Array, rows);
    const low = take(Uint8Array, out.length),
      high = take(Int8Array, out.length);
    for (let row = 0, i = 0; row < rows; row++) {
      for (const end = i + columns; i < end; i++) out[i] = (high[i] * 256 + low[i]) * scales[row];
    }
  }
  return { files: { ...files, "model.safetensors": file }, table, numbers };
}

async function start({ program, machine, runtime, library, lock, files }) {
  const original = self.fetch; // not needed to start: both files that Pyodide fetches are here already
  WebAssembly.instantiateStreaming = async (_, imports) => ({
    module: runtime,
    instance: await WebAssembly.instantiate(runtime, imports),
  });
  self.fetch = async () => new Response(library);
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all([import(program), import(machine)]);
  python = await loadPyodide({ indexURL: "https://nowhere.invalid/", lockFileContents: lock, createPyodideModule });
  self.fetch = original;
  for (const [path, text] of Object.entries(files)) {
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, text);
  }
  python.runPython("from publish.type_bert.runner import answer, guard");
  answer = python.globals.get("answer");
}

let model; // its weights, for JavaScript, which multiplies matrices thirty times as fast
async function load(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { files, ...weights } = unpack(await new Response(stream).arrayBuffer());
  model = weights;
  python.FS.mkdirTree("/model");
  for (const [name, content] of Object.entries(files)) {
    python.FS.writeFile(`/model/${name}`, content, { canOwn: true }); // not copied
  }
}

// Multiply each vector, an array of Python, by a weight matrix, and add a bias, like `linear` in microbert.py.
function linear(x, name) {
  const { table, numbers } = model,
    [rows, size] = table[`${name}.weight`].shape;
  const [from, bias] = ["weight", "bias"].map((part) => table[`${name}.${part}`].data_offsets[0] / 4);
  return x.toJs().map((vector) => {
    const out = new Float64Array(rows);
    for (let row = 0, i = from; row < rows; row++) {
      let sum = numbers[bias + row];
      for (let j = 0; j < size; j++) sum += numbers[i++] * vector[j];
      out[row] = sum;
    }
    return out;
  });
}

async function reply({ id, call, input }) {
  try {
    let value = null;
    if (call === "start") await start(input);
    else if (call === "model") await load(input);
    else value = JSON.parse(answer(call, JSON.stringify(input), linear));
    if (call === "prepare") isIntact = python.globals.get("guard")();
    postMessage({ id, value, intact: isIntact() });
  } catch (error) {
    postMessage({ id, error: String(error?.message ?? error) });
  }
}

let queue = Promise.resolve(); // `start` takes seconds, and other calls wait for it
self.onmessage = ({ data }) => {
  queue = queue.then(() => reply(data));
};
