// The worker: an Engine behind messages. Sound of the microphone comes by a port of its own, from
// the audio thread to here, and does not pass the page.
import { Engine } from "./engine.js";

const engine = new Engine((message) => postMessage(message));
const pause = () => new Promise((resolve) => setTimeout(resolve));
let port = null;

const tasks = {
  start: ({ wasm }) => engine.start(wasm),
  load: ({ name, bytes }) => engine.load(name, new Uint8Array(bytes)),
  clip: ({ name, bytes }) => engine.clip(name, bytes, pause),
  live({ rate, port: from }) {
    engine.live(rate);
    port = from;
    port.onmessage = ({ data }) => engine.audio(data);
  },
  stop() {
    port?.close();
    port = null;
    engine.stop();
  },
};

// One after the other, but for a stop, which ends a long clip.
let queue = Promise.resolve();
onmessage = ({ data }) => {
  if (data.kind === "stop") return tasks.stop();
  queue = queue.then(() => tasks[data.kind](data)).catch((error) => {
    postMessage({ kind: "error", about: data.kind, name: data.name, text: error.message });
  });
};
