// Runs the model in a worker, so that the page stays responsive. Its files come from the page's own folder.
let ort, session;
let loaded = 0;

// Fetch and unpack a gzip file, reporting each chunk to the page.
async function unpacked(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} is not there (${response.status})`);
  const counter = new TransformStream({
    transform(chunk, controller) {
      loaded += chunk.length;
      postMessage({ loaded });
      controller.enqueue(chunk);
    },
  });
  const stream = response.body.pipeThrough(counter).pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

async function load({ program, runtime, encoder }) {
  loaded = 0;
  const [wasm, model] = await Promise.all([unpacked(runtime), unpacked(encoder)]);
  ort = await import(program);
  ort.env.wasm.wasmBinary = wasm;
  ort.env.wasm.numThreads = 1;
  session = await ort.InferenceSession.create(new Uint8Array(model), { executionProviders: ["wasm"] });
}

async function run({ ids, types }) {
  const row = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
  const inputs = { input_ids: row(ids), attention_mask: row(ids.map(() => 1)), token_type_ids: row(types) };
  const outputs = Object.entries(await session.run(inputs));
  return Object.fromEntries(outputs.map(([name, tensor]) => [name, tensor.data.slice()]));
}

self.onmessage = async ({ data: { call, files, input } }) => {
  try {
    postMessage({ call, value: await (files ? load(files) : run(input)) });
  } catch (error) {
    postMessage({ call, error: String(error?.message ?? error) });
  }
};
