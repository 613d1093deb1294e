// Runs Python in a worker, so that the page stays responsive: `start` once, then functions of run.py.
let python;

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
  return { ...files, "model.safetensors": file };
}

async function start({ program, machine, runtime, library, lock, runner, model, folder }) {
  const original = self.fetch; // not needed to start: both files that Pyodide fetches are here already
  WebAssembly.instantiateStreaming = async (_, imports) => ({
    module: runtime,
    instance: await WebAssembly.instantiate(runtime, imports),
  });
  self.fetch = async () => new Response(library);
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all([import(program), import(machine)]);
  python = await loadPyodide({ indexURL: `${location.origin}/`, lockFileContents: lock, createPyodideModule });
  self.fetch = original;
  python.FS.mkdir(folder);
  for (const [name, content] of Object.entries(unpack(model)))
    python.FS.writeFile(`${folder}/${name}`, content, { canOwn: true });
  python.runPython(runner);
}

const report = () => postMessage({ layer: true });
const ask = (call, input) => JSON.parse(python.globals.get("answer")(call, JSON.stringify(input), report));

self.onmessage = async ({ data: { call, input } }) => {
  try {
    postMessage({ value: call === "start" ? ((await start(input)) ?? null) : ask(call, input) });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};
