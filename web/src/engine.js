// A model at work, without a page: clips and live sound in, what to draw and answers out. Runs in a
// worker (worker.js), so that drawing never waits for it, and in tests.
//
// It reports by `report(message)`:
//   { kind: "model", facts }                             a model is loaded
//   { kind: "begin", source, rate, name? }               sound begins: "microphone" or "clip"
//   { kind: "frames", samples, frames }                  sound with what the model made of it; a
//                                                        frame is { at, speaking, answer?, norms? },
//                                                        `at` being its last sample
//   { kind: "answer", source, name, best, answer, seconds, ...speed }
//   { kind: "end" }, { kind: "error", text }
import { Listener } from "./listen.js";
import { Resampler } from "./resample.js";
import { loadRuntime } from "./runtime.js";
import { readWav } from "./wav.js";

const kWhole = 3;  // seconds: longer clips are cut at pauses, as live sound is

// The header of a safetensors file, which the runtime has found to be right.
function metadata(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const header = bytes.subarray(8, 8 + Number(view.getBigUint64(0, true)));
  return JSON.parse(JSON.parse(new TextDecoder().decode(header)).__metadata__.model);
}

// What keeps a model from listening, or "".
function whyNot(model) {
  const other = "; choose one that was trained on audio, such as configs/small/spoken_digits.toml";
  if (model.tokens) return `This model reads ${model.text ? "text" : "token numbers"}, not sound` + other;
  if (model.pairs) return "This model compares two sequences" + other;
  if (model.inputs !== 1) return `This model takes ${model.inputs} channels, sound has one` + other;
  if (!model.classifies) return "This model predicts values, not classes" + other;
  if (model.rate === 0) return "This model has no sample rate, so it is not a model of audio" + other;
  return "";
}

const bestOf = (answer) => answer.reduce((best, p, k) => (p > answer[best] ? k : best), 0);

export class Engine {
  constructor(report, now = () => performance.now()) {
    this.report = report;
    this.now = now;
    this.clips = 0;  // raised to stop a clip that is under way
  }

  async start(wasm, environment) {
    this.runtime = await loadRuntime(wasm, environment);
  }

  load(name, bytes) {
    const model = this.runtime.model(bytes);
    const reason = whyNot(model);
    if (reason) {
      model.free();
      throw new Error(reason);
    }
    this.stop();
    this.stream?.free();
    this.model?.free();
    this.stream = null;
    this.model = model;
    const about = metadata(bytes);
    // A mean for every step is one that ends.
    this.longest = about.preprocessing.per_step ? about.preprocessing.max_length : Infinity;
    if (!model.bidirectional) this.stream = model.stream();
    const { classes, rate, parameters, depth, width, states, bidirectional, pooling } = model;
    this.report({ kind: "model", facts: {
      name, size: bytes.length, version: this.runtime.version, layer: about.layer, task: about.task,
      classes, rate, parameters, depth, width, states, bidirectional, pooling, ...this.measure() } });
  }

  // Microseconds of one sample alone, and how much faster than real time a chunk of 10 ms is.
  measure() {
    const { model } = this, noise = Float32Array.from({ length: 4096 }, (_, i) => 0.1 * Math.sin(i * i));
    const timed = (step, most) => {  // seconds a step: the best of five, clocks of pages are coarse
      let best = Infinity;
      for (let round = 0; round < 5; ++round) {
        const begin = this.now();
        let steps = 0;
        while (this.now() - begin < most) steps += step();
        best = Math.min(best, (this.now() - begin) / 1000 / steps);
      }
      return best;
    };
    if (!this.stream) {
      const clip = noise.subarray(0, Math.min(4096, this.longest));
      return { realTime: 1 / model.rate / timed(() => (model.score(clip), clip.length), 20) };
    }
    const chunk = Math.min(Math.round(model.rate / 100), this.longest);
    const step = (size) => () => {
      if (this.stream.steps * this.model.hop + size > this.longest) this.stream.reset();
      this.stream.push(noise.subarray(0, size));
      return size;
    };
    const out = { latency: 1e6 * timed(step(1), 10), realTime: 1 / model.rate / timed(step(chunk), 20) };
    this.stream.reset();
    return out;
  }

  // Sound that arrives. ---------------------------------------------------------------------------

  live(rate) {
    if (!this.model) throw new Error("There is no model yet");
    if (!this.stream) {
      throw new Error("This model reads sound in both directions, so it needs the end of a clip before it can predict "
                      + "anything: drop a WAV file, or train with model.bidirectional = false");
    }
    this.stop();
    this.listening = this.session("microphone", "");
    this.resampler = new Resampler(rate, this.model.rate);
    this.report({ kind: "begin", source: "microphone", rate: this.model.rate });
  }

  audio(samples) {
    if (this.listening) this.hear(this.listening, this.resampler.push(samples));
  }

  stop() {
    ++this.clips;
    if (!this.listening) return;
    this.listening = null;
    this.stream?.reset();
    this.report({ kind: "end" });
  }

  // What belongs to sound in which words are looked for.
  session(source, name) {
    return { source, name, listener: new Listener(this.model.rate), heard: 0, busy: 0, steps: 0 };
  }

  hear(session, samples, last = false) {
    const frames = [], sounds = [], { stream } = this;
    const put = (frame, speaking) => {
      session.heard += frame.length;
      sounds.push(frame.slice());
      frames.push({ at: session.heard, speaking });
      return frames[frames.length - 1];
    };
    const run = (frame) => {
      const room = Math.max(0, this.longest - stream.steps * this.model.hop);
      stream.push(frame.length > room ? frame.subarray(0, room) : frame);
      session.steps += frame.length;
    };
    const answered = (frame) => Object.assign(frame, { answer: stream.answer(), norms: stream.norms() });
    const on = {
      idle: (frame) => put(frame, false),
      begin: (before) => {
        const begin = this.now();
        stream.reset();
        before.forEach(run);
        session.began = session.heard - (before.length - 1) * session.listener.frame;
        session.word = answered(put(before[before.length - 1], true));
        session.busy += this.now() - begin;
      },
      go: (frame, inside) => {
        const begin = this.now();
        if (inside) run(frame);
        const shown = put(frame, inside);
        // Silence behind the word is not shown to the model: it was trained on words.
        if (inside) session.word = answered(shown);
        session.busy += this.now() - begin;
      },
      end: (frame, said) => {
        put(frame, false);
        if (said) this.say(session, session.word, (session.word.at - session.began) / this.model.rate);
      },
    };
    session.listener.push(samples, on);
    if (last) session.listener.finish(on);
    if (frames.length > 0) this.report({ kind: "frames", samples: joined(sounds), frames });
  }

  say(session, frame, seconds) {
    const { source, name, busy, steps } = session, best = bestOf(frame.answer);
    this.report({ kind: "answer", source, name, best, answer: frame.answer, at: frame.at, seconds,
                busy: busy / 1000, realTime: busy > 0 ? steps / this.model.rate / (busy / 1000) : null });
  }

  // Clips. ----------------------------------------------------------------------------------------

  // The bytes of a WAV file. `pause()` lets messages in while a long one runs.
  async clip(name, buffer, pause = async () => {}) {
    if (!this.model) throw new Error("There is no model yet");
    this.stop();
    const turn = this.clips, { rate } = this.model;
    const wav = readWav(buffer);
    const samples = new Resampler(wav.rate, rate).push(wav.samples, true);
    this.report({ kind: "begin", source: "clip", rate, name });
    if (!this.stream) {
      this.whole(name, samples);
    } else if (samples.length > kWhole * rate) {
      const session = this.session("clip", name), part = Math.round(rate / 5);
      for (let i = 0; i < samples.length && turn === this.clips; i += part) {
        this.hear(session, samples.subarray(i, i + part), i + part >= samples.length);
        await pause();
      }
    } else {
      this.short(name, samples);
    }
    this.report({ kind: "end" });
  }

  // One word, as `rotrnn predict` takes it: from the first sample to the last.
  short(name, all) {
    const { stream, model } = this, samples = all.subarray(0, this.longest), frames = [];
    const size = Math.max(1, Math.round(Math.min(samples.length / 200, model.rate / 100)));
    const session = this.session("clip", name), begin = this.now();
    stream.reset();
    for (let i = 0; i < samples.length; i += size) {
      const part = samples.subarray(i, i + size);
      stream.push(part);
      frames.push({ at: i + part.length, speaking: true, answer: stream.answer(), norms: stream.norms() });
    }
    session.busy = this.now() - begin;
    session.steps = samples.length;
    this.report({ kind: "frames", samples: samples.slice(), frames });
    this.say(session, frames[frames.length - 1], samples.length / model.rate);
  }

  // A model of both directions: nothing before the end.
  whole(name, samples) {
    const session = this.session("clip", name), begin = this.now();
    const logits = this.model.score(samples), K = this.model.outputs;
    const frame = { at: samples.length, speaking: true, answer: this.model.answer(logits.subarray(logits.length - K)) };
    session.busy = this.now() - begin;
    session.steps = samples.length;
    this.report({ kind: "frames", samples, frames: [frame] });
    this.say(session, frame, samples.length / this.model.rate);
  }
}

function joined(parts) {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
