// The runtime in WebAssembly, as JavaScript sees it: rotrnn/runtime/c_api.h without the pointers.
// Errors of the runtime become Errors with its words. Works in pages, workers and Node.js.

const kStatus = ["ok", "bad argument", "bad file", "unsupported", "out of memory", "internal"];
const kPooling = ["mean", "last", "none"];

// Thrown by every call that fails; status is one of kStatus.
export class RuntimeError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "RuntimeError";
    this.status = kStatus[status] || "internal";
  }
}

// The module asks its host for little: variables of the environment, and a place to write to when
// it aborts. Whatever else it imports answers "not supported", as there are no files.
function hostFunctions(module, environment, instance) {
  const kNotSupported = 52;
  const memory = () => new DataView(instance().exports.memory.buffer);
  const text = Object.entries(environment).map(([key, value]) => `${key}=${value}\0`);
  const known = {
    environ_sizes_get(count, size) {
      memory().setUint32(count, text.length, true);
      memory().setUint32(size, text.join("").length, true);
      return 0;
    },
    environ_get(table, at) {
      for (const line of text) {
        memory().setUint32(table, at, true);
        table += 4;
        for (const letter of line) memory().setUint8(at++, letter.charCodeAt(0));
      }
      return 0;
    },
    proc_exit(code) { throw new Error(`the runtime ended with ${code}`); },
    emscripten_notify_memory_growth() {},
  };
  const imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== "function") throw new Error(`the runtime asks for ${from}.${name}, which no page has`);
    (imports[from] ||= {})[name] = known[name] || (() => kNotSupported);
  }
  return imports;
}

// bytes: of rotrnn.wasm. environment: such as { ROTRNN_SIMD: "scalar" }.
export async function loadRuntime(bytes, environment = {}) {
  const module = await WebAssembly.compile(bytes);
  let made = null;
  made = await WebAssembly.instantiate(module, hostFunctions(module, environment, () => made));
  made.exports._initialize?.();
  return new Runtime(made.exports);
}

class Runtime {
  constructor(exports) {
    this.c = exports;
    this.slot = this.take(8);  // where calls put handles
  }

  get version() { return this.text(this.c.rotrnn_version()); }

  // The bytes of a model file to a Model.
  model(bytes) {
    const at = this.take(bytes.length);
    try {
      new Uint8Array(this.c.memory.buffer).set(bytes, at);
      this.check(this.c.rotrnn_model_from_memory(at, bytes.length, this.slot));
    } finally {
      this.c.free(at);
    }
    return new Model(this, this.handle());
  }

  // Memory of the module. Views on it do not outlive a call, which may move it.
  take(size) {
    const at = this.c.malloc(Math.max(size, 1));
    if (at === 0) throw new RuntimeError(4, "there is not enough memory");
    return at;
  }
  floats(at, count) { return new Float32Array(this.c.memory.buffer, at, count); }
  handle() { return new DataView(this.c.memory.buffer).getUint32(this.slot, true); }

  text(at) {
    const bytes = new Uint8Array(this.c.memory.buffer);
    return new TextDecoder().decode(bytes.slice(at, bytes.indexOf(0, at)));
  }

  check(status) {
    if (status !== 0) throw new RuntimeError(status, this.text(this.c.rotrnn_last_error()));
  }
}

class Model {
  constructor(runtime, handle) {
    this.runtime = runtime;
    this.at = handle;
    const info = runtime.take(128), view = () => new DataView(runtime.c.memory.buffer, info);
    view().setBigInt64(0, 128n, true);  // the room; what the library does not know stays 0
    runtime.check(runtime.c.rotrnn_model_describe(handle, info));
    ["inputs", "outputs", "width", "states", "depth", "parameters", "rate"].forEach((name, i) => {
      this[name] = Number(view().getBigInt64(8 + 8 * i, true));
    });
    ["tokens", "text", "classifies", "bidirectional", "pairs"].forEach((name, i) => {
      this[name] = view().getInt32(64 + 4 * i, true) === 1;
    });
    this.pooling = kPooling[view().getInt32(84, true)];
    this.window = Number(view().getBigInt64(88, true));  // samples of a step of the network,
    this.hop = Number(view().getBigInt64(96, true));     // and from one to the next
    runtime.c.free(info);
    this.classes = [];
    for (let k = 0; this.classifies && k < this.outputs; ++k) {
      this.classes.push(runtime.text(runtime.c.rotrnn_model_class_name(handle, BigInt(k))));
    }
  }

  stream() {
    const { runtime } = this;
    runtime.check(runtime.c.rotrnn_stream_new(this.at, runtime.slot));
    return new Stream(this, runtime.handle());
  }

  // Logits of one whole sequence of values (Float32Array) or token numbers (Int32Array).
  score(input) {
    const { runtime } = this, steps = this.tokens ? input.length : input.length / this.inputs;
    const outputs = this.outputs * (this.pooling === "none" ? steps : 1);
    const at = runtime.take(4 * input.length), offsets = runtime.take(16), out = runtime.take(4 * outputs);
    try {
      new input.constructor(runtime.c.memory.buffer, at, input.length).set(input);
      const ends = new DataView(runtime.c.memory.buffer, offsets);
      ends.setBigInt64(0, 0n, true);
      ends.setBigInt64(8, BigInt(steps), true);
      const call = this.tokens ? runtime.c.rotrnn_score_tokens : runtime.c.rotrnn_score;
      runtime.check(call(this.at, at, offsets, 1, 1, out, outputs));
      return runtime.floats(out, outputs).slice();
    } finally {
      for (const pointer of [at, offsets, out]) runtime.c.free(pointer);
    }
  }

  // Logits to probabilities.
  answer(logits) {
    const { runtime } = this, at = runtime.take(4 * logits.length);
    try {
      runtime.floats(at, logits.length).set(logits);
      runtime.check(runtime.c.rotrnn_answer(this.at, at, logits.length));
      return runtime.floats(at, logits.length).slice();
    } finally {
      runtime.c.free(at);
    }
  }

  free() {
    this.runtime.c.rotrnn_model_free(this.at);
    this.at = 0;
  }
}

const kChunk = 4096;  // numbers that go over at once

class Stream {
  constructor(model, handle) {
    this.model = model;
    this.runtime = model.runtime;
    this.at = handle;
    this.input = this.runtime.take(4 * kChunk);
    this.out = this.runtime.take(4 * Math.max(model.outputs, model.depth));
  }

  // Whole steps of values (Float32Array, audio -1 to 1), or token numbers (Int32Array).
  push(numbers) {
    const { c } = this.runtime, { inputs, tokens } = this.model;
    const most = tokens ? kChunk : Math.floor(kChunk / inputs) * inputs;
    for (let i = 0; i < numbers.length; i += most) {
      const part = numbers.subarray(i, i + most);
      new part.constructor(c.memory.buffer, this.input, part.length).set(part);
      this.runtime.check(tokens ? c.rotrnn_stream_push_tokens(this.at, this.input, part.length)
                                : c.rotrnn_stream_push(this.at, this.input, part.length / inputs));
    }
  }

  get steps() { return Number(this.runtime.c.rotrnn_stream_steps(this.at)); }
  reset() { this.runtime.check(this.runtime.c.rotrnn_stream_reset(this.at)); }
  logits() { return this.read("rotrnn_stream_logits", this.model.outputs); }
  answer() { return this.read("rotrnn_stream_answer", this.model.outputs); }
  norms() { return this.read("rotrnn_stream_norms", this.model.depth); }

  read(call, count) {
    this.runtime.check(this.runtime.c[call](this.at, this.out, count));
    return this.runtime.floats(this.out, count).slice();
  }

  free() {
    this.runtime.c.rotrnn_stream_free(this.at);
    for (const pointer of [this.input, this.out]) this.runtime.c.free(pointer);
    this.at = 0;
  }
}
