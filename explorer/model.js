// The model in its worker: `load` fetches it once, `run` returns the outputs of all parts of the encoder.
export function makeModel(source, files) {
  let worker, loading;
  const waiting = new Map(),
    watching = new Set(); // those who wait for an answer, and those who show the progress

  function ask(message) {
    const call = waiting.size ? Math.max(...waiting.keys()) + 1 : 1;
    return new Promise((resolve, reject) => {
      waiting.set(call, { resolve, reject });
      worker.postMessage({ call, ...message });
    });
  }

  function fail(reason) {
    for (const { reject } of waiting.values()) reject(new Error(reason));
    waiting.clear();
  }

  function start() {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    // a worker from a blob inherits the page's policy on what may be fetched
    worker = new Worker(address, { type: "module" });
    worker.onerror = (event) => fail(event.message ?? "the worker did not start");
    worker.onmessage = ({ data: { call, value, error, loaded } }) => {
      if (loaded !== undefined) return watching.forEach((show) => show(loaded));
      const { resolve, reject } = waiting.get(call);
      waiting.delete(call);
      return error === undefined ? resolve(value) : reject(new Error(error));
    };
    return ask({ files });
  }

  return {
    load(onProgress) {
      watching.add(onProgress);
      loading ??= start()
        .finally(() => watching.clear())
        .catch((error) => {
          worker.terminate();
          loading = undefined; // so that the reader can try again
          throw error;
        });
      return loading;
    },
    run: (input) => ask({ input }),
  };
}
