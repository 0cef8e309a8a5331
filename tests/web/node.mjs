// The WebAssembly runtime, and what the page is made of, in Node.js.
// node node.mjs SOURCES RUNTIME.wasm FOLDED: web/src, what it is compiled to, the cases of folded.py
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [sources, wasmFile, folded] = process.argv.slice(2);
const source = (name) => import(pathToFileURL(join(sources, name)).href);
const { loadRuntime } = await source("runtime.js");
const { Engine } = await source("engine.js");
const { Listener } = await source("listen.js");
const { Resampler } = await source("resample.js");
const { readWav } = await source("wav.js");

const wasm = readFileSync(wasmFile);
const { cases } = JSON.parse(readFileSync(join(folded, "cases.json")));
const file = (name) => new Uint8Array(readFileSync(join(folded, name)));
const named = (name) => cases.find((one) => one.name === name);

// The same numbers for ever.
function randomNumbers(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

// Largest |a - b| / (1 + |b|), as the tests of the runtime have it.
function distance(a, b) {
  assert.equal(a.length, b.length);
  let most = 0;
  for (let i = 0; i < b.length; ++i) {
    const d = Math.abs(a[i] - b[i]) / (1 + Math.abs(b[i]));
    most = Math.max(most, Number.isNaN(d) ? Infinity : d);
  }
  return most;
}

// As tests/runtime/stream_test.cpp has it, times two: products and sums are rounded one by one,
// where native code has them in one instruction.
const kTolerance = 2e-5;

// --- the runtime against what NumPy computes in float64 ---

for (const simd of ["", "baseline", "scalar"]) {
  const runtime = await loadRuntime(wasm, simd === "" ? {} : { ROTRNN_SIMD: simd });
  let most = 0, streamed = 0, whole = 0;
  for (const one of cases) {
    const model = runtime.model(file(one.file));
    assert.equal(model.outputs, one.outputs, one.name);
    assert.equal(model.tokens, "tokens" in one, one.name);
    if (model.classifies) assert.equal(model.classes[0], "class 0");
    const input = model.tokens ? Int32Array.from(one.tokens) : Float32Array.from(one.values);
    const K = one.outputs, rows = one.logits.length / K, inputs = model.tokens ? 1 : one.inputs;
    const row = (r) => one.logits.slice(r * K, (r + 1) * K);
    if (one.streams) {
      const stream = model.stream();
      const steps = input.length / inputs, every = /keep every/.test(one.name) ? 3 : 1;
      // The last step of the network after so many of the input; -1: none.
      const last = (t) => Math.floor((Math.ceil(t / every) - model.window) / model.hop);
      // Every prefix, then chunks of 37.
      for (const chunk of [1, 37]) {
        stream.reset();
        for (let t = 0; t < steps; t += chunk) {
          stream.push(input.subarray(t * inputs, (t + chunk) * inputs));
          const at = last(Math.min(t + chunk, steps));
          if (at >= 0) most = Math.max(most, distance(stream.logits(), row(at)));
        }
        assert.equal(stream.steps, rows, one.name);
      }
      most = Math.max(most, distance(stream.answer(), one.answer), distance(stream.norms(), one.norms));
      assert.ok(most < kTolerance, `${one.name}: ${most}`);
      stream.free();
      ++streamed;
    } else {
      assert.throws(() => model.stream(), { status: "unsupported" }, one.name);
    }
    if (one.lengths.length === 1) {
      const logits = model.score(input);
      most = Math.max(most, distance(logits, model.pooling === "none" ? one.logits : row(rows - 1)));
      assert.ok(most < kTolerance, `${one.name}: ${most}`);
      ++whole;
    }
    model.free();
  }
  assert.ok(streamed > 60 && whole > 60);
  console.log(`${simd || "default"}: ${streamed} models at every step and ${whole} whole, distance from float64 ${most.toExponential(1)}`);
}
await assert.rejects(async () => (await loadRuntime(wasm, { ROTRNN_SIMD: "avx2" })).model(file("00.safetensors")),
                     /not in this build/);

// --- files that are not models ---

{
  const runtime = await loadRuntime(wasm), random = randomNumbers(7);
  const good = file(named("plain").file), memory = () => runtime.c.memory.buffer.byteLength;
  assert.throws(() => runtime.model(new Uint8Array(0)), { status: "bad file" });
  assert.throws(() => runtime.model(new TextEncoder().encode("RIFF and so on, a file of another kind")), { status: "bad file" });
  // A header that claims more than there is.
  const huge = good.slice();
  new DataView(huge.buffer).setBigUint64(0, 1n << 60n, true);
  assert.throws(() => runtime.model(huge), { status: "bad file" });
  let refused = 0;
  const before = memory();
  for (let i = 0; i < 600; ++i) {
    let bad = good.slice(0, i < 200 ? Math.floor(random() * good.length) : good.length);
    // Mostly in the header, where a byte means something.
    if (i >= 200) bad[Math.floor(random() * (i % 4 ? 3000 : bad.length))] = Math.floor(random() * 256);
    try {
      runtime.model(bad).free();
    } catch (error) {
      assert.equal(error.name, "RuntimeError", String(error.stack));
      assert.ok(error.message.length > 20);
      ++refused;
    }
  }
  assert.ok(refused > 300);
  for (let i = 0; i < 100; ++i) assert.throws(() => runtime.model(new Uint8Array(1 << 20)), { status: "bad file" });
  assert.ok(memory() - before < 1e7, "what was refused is freed");
  const model = runtime.model(good), stream = model.stream();
  assert.throws(() => stream.push(Float32Array.of(0, NaN)), { status: "bad argument" });
  stream.push(Float32Array.from(named("plain").values));
  assert.ok(distance(stream.answer(), named("plain").answer) < kTolerance, "the runtime goes on after errors");
  console.log(`${refused} of 600 damaged models refused, none crashed`);
}

// --- WAV files ---

function wav({ rate = 8000, bits = 16, code = 1, channels = 1, samples, claimed, extra = false }) {
  const bytes = bits / 8, size = samples.length * bytes, head = extra ? 68 : 44;
  const view = new DataView(new ArrayBuffer(head + size));
  const tag = (at, text) => [...text].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  tag(0, "RIFF");
  view.setUint32(4, 36 + size, true);
  tag(8, "WAVEfmt ");
  view.setUint32(16, extra ? 40 : 16, true);
  view.setUint16(20, extra ? 0xfffe : code, true);
  if (extra) view.setUint16(44, code, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint16(34, bits, true);
  tag(head - 8, "data");
  view.setUint32(head - 4, claimed ?? size, true);
  samples.forEach((x, i) => {
    const at = head + i * bytes;
    if (code === 3) bits === 32 ? view.setFloat32(at, x, true) : view.setFloat64(at, x, true);
    else if (bits === 8) view.setUint8(at, x + 128);
    else if (bits === 16) view.setInt16(at, x, true);
    else if (bits === 24) { view.setUint16(at, x & 0xffff, true); view.setInt8(at + 2, x >> 16); }
    else view.setInt32(at, x, true);
  });
  return view.buffer;
}

{
  const read = (options) => [...readWav(wav(options)).samples];
  assert.deepEqual(read({ samples: [0, 1, -32768, 32767] }), [0, 1 / 32768, -1, 32767 / 32768]);
  assert.deepEqual(read({ bits: 8, samples: [0, -128, 64] }), [0, -1, 0.5]);
  assert.deepEqual(read({ bits: 24, samples: [1, -8388608, 4194304] }), [1 / 8388608, -1, 0.5]);
  assert.deepEqual(read({ bits: 32, samples: [-2147483648, 1073741824] }), [-1, 0.5]);
  assert.deepEqual(read({ bits: 32, code: 3, samples: [0.25, -0.5] }), [0.25, -0.5]);
  assert.deepEqual(read({ bits: 64, code: 3, extra: true, samples: [0.25] }), [0.25]);
  assert.deepEqual(read({ channels: 2, samples: [16384, 0, -16384, -16384] }), [0.25, -0.5]);
  assert.deepEqual(read({ samples: [16384], claimed: 0xffffffff }), [0.5], "a length that a pipe left open");
  // A chunk of odd length before the samples has a byte behind it.
  const plain = new Uint8Array(wav({ samples: [16384] })), odd = [...plain.slice(0, 36), ...[..."LIST"].map((c) => c.charCodeAt(0)), 3, 0, 0, 0, 1, 2, 3, 0, ...plain.slice(36)];
  assert.deepEqual([...readWav(Uint8Array.from(odd).buffer).samples], [0.5]);
  assert.equal(readWav(wav({ rate: 44100, samples: [1] })).rate, 44100);
  const refuse = (buffer, words) => assert.throws(() => readWav(buffer), words);
  refuse(new ArrayBuffer(0), /not a WAV/);
  refuse(new TextEncoder().encode("{\"json\": true}").buffer, /not a WAV/);
  refuse(wav({ samples: [] }), /no sound/);
  refuse(wav({ samples: [1], code: 85 }), /kind 85/);
  refuse(wav({ samples: [1], channels: 0 }), /no channels/);
  refuse(wav({ samples: [NaN], bits: 32, code: 3 }), /not a number/);
  refuse(wav({ samples: [1] }).slice(0, 30), /ends before/);
}

// --- sample rates ---

const tone = (hertz, rate, seconds) => Float32Array.from(
  { length: Math.round(rate * seconds) }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * i) / rate));

for (const [from, to] of [[48000, 8000], [44100, 8000], [44100, 16000], [8000, 16000], [16000, 16000]]) {
  const input = tone(1000, from, 0.5), want = tone(1000, to, 0.5);
  const whole = new Resampler(from, to).push(input, true);
  assert.equal(whole.length, want.length);
  // Not at the ends, where the tone begins and stops.
  const inside = (samples) => samples.subarray(0.1 * to, 0.4 * to);
  const off = Math.max(...inside(whole).map((x, i) => Math.abs(x - inside(want)[i])));
  assert.ok(off < 1e-3, `${from} to ${to}: ${off}`);
  // Cut anywhere, the same samples.
  const random = randomNumbers(from + to), parts = [], resampler = new Resampler(from, to);
  for (let i = 0; i < input.length;) {
    const size = 1 + Math.floor(700 * random());
    parts.push(...resampler.push(input.subarray(i, i + size), i + size >= input.length));
    i += size;
  }
  assert.deepEqual(Float32Array.from(parts), whole);
  // What the lower rate cannot hold is gone: 60 dB.
  if (from <= to) continue;
  const high = new Resampler(from, to).push(tone(0.6 * to, from, 0.5), true);
  assert.ok(Math.max(...inside(high).map(Math.abs)) < 5e-4, `${from} to ${to} folds`);
}

// --- words in live sound ---

{
  const rate = 8000, random = randomNumbers(3), words = [];
  // Noise of a room with two words and a click in it; the second word has a pause as "eight" has.
  const sound = Float32Array.from({ length: 4 * rate }, () => 0.002 * (random() - 0.5));
  const say = (from, to) => tone(300, rate, to - from).forEach((x, i) => { sound[Math.round(from * rate) + i] += 0.3 * x; });
  say(1, 1.4);
  say(2.1, 2.13);
  say(3, 3.2);
  say(3.3, 3.4);
  const listener = new Listener(rate);
  let heard = 0, last = 0, began = 0;
  const on = {
    idle: (frame) => { heard += frame.length; },
    begin: (frames) => { heard += listener.frame; began = last = heard - frames.length * listener.frame; },
    go: (frame, inside) => { heard += frame.length; if (inside) last = heard; },
    end: (frame, said) => { heard += frame.length; if (said) words.push([began / rate, last / rate]); },
  };
  for (let i = 0; i < sound.length; i += 333) listener.push(sound.subarray(i, i + 333), on);
  listener.finish(on);
  assert.equal(words.length, 2, JSON.stringify(words));
  for (const [i, [from, to]] of [[1, 1.4], [3, 3.4]].entries()) {
    assert.ok(words[i][0] <= from && words[i][0] > from - 0.11, `${words[i]}`);
    assert.ok(words[i][1] >= to && words[i][1] < to + 0.08, `${words[i]}`);
  }
}

// --- the engine: what it refuses, and that a clip is what the stream says of it ---

{
  const messages = [], engine = new Engine((message) => messages.push(message));
  await engine.start(wasm);
  const load = (name) => engine.load("test", file(named(name).file));
  await assert.rejects(engine.clip("x", wav({ samples: [1] })), /no model/);
  assert.throws(() => load("tokens"), /token numbers, not sound/);
  assert.throws(() => load("bytes"), /text, not sound/);
  assert.throws(() => load("values"), /4 channels/);
  assert.throws(() => load("pairs"), /not sound|two sequences/);
  assert.throws(() => load("one of all"), /values, not classes/);
  assert.throws(() => load("plain"), /no sample rate/);
  assert.equal(messages.length, 0);

  // 16-bit samples, as the file has them.
  const audio = named("audio"), samples = audio.values.map((x) => Math.max(-32768, Math.min(32767, Math.round(8192 * x))));
  load("audio");
  const { facts } = messages.pop();
  assert.equal(facts.rate, 8000);
  assert.ok(facts.realTime > 0 && facts.latency > 0);
  await engine.clip("before.wav", wav({ samples: samples.slice(0, 500) }));
  messages.length = 0;
  await engine.clip("x.wav", wav({ samples }));
  assert.deepEqual(messages.map((message) => message.kind), ["begin", "frames", "answer", "end"]);
  const stream = engine.runtime.model(file(audio.file)).stream();
  stream.push(Float32Array.from(samples, (x) => x / 32768));
  assert.deepEqual(messages[2].answer, stream.answer());
  assert.deepEqual(messages[1].frames.at(-1).norms, stream.norms());
  assert.equal(messages[1].samples.length, samples.length);
  assert.ok(Math.abs(messages[2].seconds - samples.length / 8000) < 1e-9);

  // Live, the sound arrives in blocks of any size: the same words.
  const room = randomNumbers(5), word = Float32Array.from(samples, (x) => x / 32768);
  const sound = Float32Array.from({ length: 24000 }, () => 0.001 * room());
  sound.set(word, 8000);
  const listen = (size) => {
    messages.length = 0;
    engine.live(8000);
    for (let i = 0; i < sound.length; i += size) engine.audio(sound.subarray(i, i + size));
    engine.stop();
    const answers = messages.filter((message) => message.kind === "answer");
    assert.equal(answers.length, 1);
    assert.equal(messages.at(-1).kind, "end");
    return answers[0];
  };
  const first = listen(100);
  assert.deepEqual(listen(1234).answer, first.answer);
  // What the stream received is the word with a little before it, and nothing else.
  stream.reset();
  stream.push(sound.subarray(Math.round(first.at - first.seconds * 8000), first.at));
  assert.deepEqual(first.answer, stream.answer());
  assert.ok(first.seconds > word.length / 8000 && first.seconds < word.length / 8000 + 0.15);

  // Both directions: clips only.
  load("audio, both directions");
  assert.throws(() => engine.live(8000), /both directions/);
  messages.length = 0;
  await engine.clip("x.wav", wav({ samples: samples.slice(0, 200) }));
  const model = engine.model;
  assert.deepEqual(messages[2].answer, model.answer(model.score(Float32Array.from(samples.slice(0, 200), (x) => x / 32768))));
}

console.log("WAV files, sample rates, words and refusals");
