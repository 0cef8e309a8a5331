// The page: buttons, dropped files, what is shown of the model and of what it hears. The model works
// in a worker, whose source and the WebAssembly module come inside this file, so that the page also
// works when it is opened from a disk.
import wasm from "rotrnn-wasm";
import workerSource from "worker-source";
import { blockColour, colour, drawClasses, drawNorms, drawWave } from "./draw.js";
import { Microphone } from "./microphone.js";
import { Trace } from "./trace.js";

const $ = (id) => document.getElementById(id);
const kMostAnswers = 1000;
const microphone = new Microphone();
const state = {
  facts: null,      // of the model
  trace: null,      // what is drawn
  clip: null,       // samples of the last clip, to play
  listening: false,
  asking: false,    // for the microphone
  player: null,
  dirty: true,
};
window.rotrnn = state;  // for the curious, and for tests

function make(tag, options = {}, children = []) {
  const { text, ...attributes } = options, element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

// Words. ------------------------------------------------------------------------------------------

function status(text) { $("status").textContent = text; }

function complain(text) {
  $("error").textContent = text;
  $("error").hidden = text === "";
}

const number = new Intl.NumberFormat("en");
const percent = (p) => `${(100 * p).toFixed(p > 0.9995 || p < 0.0005 ? 0 : 1)} %`;
const times = (x) => (x >= 10 ? String(Math.round(x)) : x.toFixed(1)) + " ×";
const bytes = (n) => (n < 1e6 ? `${Math.round(n / 1e3)} kB` : `${(n / 1e6).toFixed(1)} MB`);

function ready() {
  if (!state.facts) return;
  const { name, classes, bidirectional } = state.facts;
  status(state.listening ? `Listening: say ${examples(classes)}`
    : `${name} is ready: ${bidirectional ? "" : "start the microphone or "}drop a WAV file`);
}

function examples(classes) {
  const some = classes.slice(0, 3).map((name) => `“${name}”`);
  return classes.length > 3 ? `${some.join(", ")} …` : some.join(" or ");
}

// The model. --------------------------------------------------------------------------------------

function showModel(facts) {
  state.facts = facts;
  state.trace = state.clip = null;
  $("empty").hidden = true;
  for (const id of ["stage", "about", "log"]) $(id).hidden = false;
  $("play").hidden = true;
  $("microphone").disabled = facts.bidirectional;
  $("open-wav").disabled = false;
  const { layer, depth, width, states, rate, classes, parameters } = facts;
  const rows = [
    ["File", facts.name, bytes(facts.size)],
    ["Layer", layer, facts.bidirectional ? "both directions" : "one direction"],
    ["Size", `${depth} × ${width}`, `blocks × width, ${states} complex states`],
    ["Parameters", number.format(parameters), ""],
    ["Classes", number.format(classes.length), classes.length <= 12 ? classes.join(", ") : ""],
    ["Sample rate", `${number.format(rate)} Hz`, ""],
    ["One sample", facts.latency ? `${facts.latency.toFixed(1)} µs` : "–",
     facts.latency ? `there are ${number.format(Math.round(1e6 / rate))} µs` : "needs the whole clip"],
    ["Speed", times(facts.realTime), "real time, one thread of this machine"],
    ["Runtime", `rotrnn ${facts.version}`, "WebAssembly SIMD"],
  ];
  $("facts").replaceChildren(...rows.map(([name, value, more]) => make("div", {}, [
    make("dt", { text: name }), make("dd", {}, [value, " ", make("small", { text: more })])])));
  $("bars").replaceChildren(...classes.map((name, k) => {
    const item = make("li", {}, [make("span", { class: "name", text: name, title: name }),
      make("span", { class: "track", "aria-hidden": "true" }, [make("div", { class: "fill" })]),
      make("span", { class: "percent", text: "–" })]);
    item.style.setProperty("--of", colour(k));
    return item;
  }));
  $("bars").style.setProperty("--name", `${Math.min(11, Math.max(2, ...classes.map((name) => name.length)))}ch`);
  keyOfNorms();
  showAnswer(null);
  state.dirty = true;
}

function keyOfNorms() {
  const { depth, bidirectional } = state.facts;
  if (bidirectional) return $("norms-key").replaceChildren("of models that stream");
  const swatch = (b) => {
    const line = make("i");
    line.style.setProperty("--of", blockColour(b, depth));
    return line;
  };
  const blocks = Array.from({ length: depth }, (_, b) => b);
  $("norms-key").replaceChildren("|z|, block", ...(depth <= 8 ? blocks : [0, depth - 1]).flatMap((b) => [swatch(b), String(b + 1)]));
}

function showAnswer(answer) {
  if (!state.facts) return;
  const best = answer ? answer.indexOf(Math.max(...answer)) : -1;
  [...$("bars").children].forEach((item, k) => {
    item.classList.toggle("best", k === best);
    item.style.setProperty("--p", answer ? answer[k] : 0);
    item.querySelector(".percent").textContent = answer ? percent(answer[k]) : "–";
  });
}

// The last word that was heard, in large.
function tellAnswer({ best, answer }) {
  $("answer-class").textContent = state.facts.classes[best];
  $("answer-class").style.color = colour(best);
  state.best = best;
  $("answer-sure").textContent = percent(answer[best]);
}

function logAnswer({ source, name, best, answer, seconds, realTime }) {
  const cells = [source === "microphone" ? `microphone, ${new Date().toLocaleTimeString()}` : name,
    state.facts.classes[best], percent(answer[best]), `${seconds.toFixed(2)} s`, realTime ? times(realTime) : "–"];
  $("answers").prepend(make("tr", {}, cells.map((text) => make("td", { text }))));
  while ($("answers").children.length > kMostAnswers) $("answers").lastChild.remove();
}

// Drawing, once a picture of the screen. ------------------------------------------------------------

function draw() {
  requestAnimationFrame(draw);
  const cursor = playing();
  if (!state.dirty && cursor === null) return;
  state.dirty = false;
  const { facts, trace } = state;
  if (!facts) return;
  drawWave($("wave"), trace, facts.classes, cursor);
  drawClasses($("classes"), trace, facts.classes, cursor);
  drawNorms($("norms"), trace, facts.depth, cursor);
  if (!trace) return;
  const frame = cursor === null ? trace.frames[trace.frames.length - 1] : trace.frameAt(cursor);
  // Between words the last one stays.
  if (frame?.answer) showAnswer(frame.answer);
}

// The sample that is heard now, or null.
function playing() {
  if (!state.player) return null;
  const { context, begin } = state.player;
  return Math.max(0, (context.currentTime - begin) * state.trace.rate);
}

async function play() {
  stopPlaying();
  const { rate } = state.trace, context = new AudioContext(), source = context.createBufferSource();
  const buffer = context.createBuffer(1, state.clip.length, rate);
  buffer.copyToChannel(state.clip, 0);
  source.buffer = buffer;
  source.connect(context.destination);
  source.onended = stopPlaying;
  source.start();
  state.player = { context, begin: context.currentTime };
  $("play").textContent = "Stop";
}

function stopPlaying() {
  if (!state.player) return;
  state.player.context.close();
  state.player = null;
  state.dirty = true;
  $("play").textContent = "Play the clip";
}

// The worker. -------------------------------------------------------------------------------------

const worker = new Worker(URL.createObjectURL(new Blob([workerSource], { type: "text/javascript" })));
worker.onerror = (event) => {
  status("");
  complain(`The runtime does not start in this browser: ${event.message || "WebAssembly SIMD and exceptions are needed"}`);
};

const heard = {
  model: ({ facts }) => {
    complain("");
    showModel(facts);
    ready();
  },
  begin({ source, rate, name }) {
    stopPlaying();
    state.trace = new Trace(source, rate);
    state.clip = null;
    $("play").hidden = true;
    $("wave-key").textContent = source === "clip" ? name : "microphone; blue is what the model hears";
    state.dirty = true;
  },
  frames({ samples, frames }) {
    state.trace?.add(samples, frames);
    state.dirty = true;
  },
  answer(answer) {
    state.trace?.words.push({ at: answer.at, best: answer.best });
    tellAnswer(answer);
    showAnswer(answer.answer);
    logAnswer(answer);
    state.dirty = true;
  },
  end() {
    if (state.trace && !state.trace.live) {
      state.clip = state.trace.samples.slice(0, state.trace.end);
      $("play").hidden = false;
      if (state.trace.words.length === 0) complain(`${$("wave-key").textContent}: no word in it stands out from silence`);
    }
    ready();
  },
  error({ about, name, text }) {
    if (about === "live") stopListening();
    complain(name ? `${name}: ${text.replace(/^model in memory: /, "")}` : text);
    if (about === "start") status("");
    else if (!state.facts) noModel();
    else ready();
  },
};
worker.onmessage = ({ data }) => heard[data.kind](data);
worker.postMessage({ kind: "start", wasm });

// Files. ------------------------------------------------------------------------------------------

const kLargest = 1e9;  // bytes: what a page can hold

async function take(files) {
  const known = [];
  for (const file of files) {
    const begin = new TextDecoder("latin1").decode(await file.slice(0, 12).arrayBuffer());
    const kind = begin.startsWith("RIFF") && begin.endsWith("WAVE") ? "clip"
      : file.name.endsWith(".safetensors") ? "load" : "";
    if (kind === "") complain(`${file.name}: neither a model (.safetensors) nor a WAV file`);
    else if (file.size > kLargest) complain(`${file.name}: ${bytes(file.size)} are too much for a page`);
    else known.push({ file, kind });
  }
  if (known.length > 0) complain("");
  // Models first: clips dropped with one are for it.
  for (const kind of ["load", "clip"]) {
    for (const { file } of known.filter((one) => one.kind === kind)) await send(kind, file.name, await file.arrayBuffer());
  }
}

async function send(kind, name, content) {
  if (state.listening) await stopListening();
  if (kind === "load") status(`Loading ${name}…`);
  worker.postMessage({ kind, name, bytes: content }, [content]);
}

function noModel() {
  $("empty").hidden = false;
  status("No model yet: drop one here");
}

// The model that lies beside the page, if there is one.
async function firstModel() {
  if (location.protocol === "file:") return noModel();  // pages from a disk may not read beside them
  try {
    const answer = await fetch("model.safetensors");
    if (!answer.ok) return noModel();
    await send("load", "model.safetensors", await answer.arrayBuffer());
  } catch {
    noModel();
  }
}

// Buttons. ----------------------------------------------------------------------------------------

async function startListening() {
  if (state.asking) return;  // not disabled meanwhile: a button that is loses the keyboard's focus
  state.asking = true;
  complain("");
  status("Asking for the microphone…");
  try {
    const { rate, port } = await microphone.start(() => {
      stopListening();
      complain("The microphone is gone.");
    });
    worker.postMessage({ kind: "live", rate, port }, [port]);
    state.listening = true;
  } catch (error) {
    complain(error.message);
  }
  state.asking = false;
  showListening();
}

async function stopListening() {
  state.listening = false;
  worker.postMessage({ kind: "stop" });
  await microphone.stop();
  showListening();
}

function showListening() {
  $("microphone").disabled = state.facts.bidirectional;
  $("microphone").setAttribute("aria-pressed", String(state.listening));
  $("microphone-text").textContent = state.listening ? "Stop the microphone" : "Start the microphone";
  ready();
}

$("microphone").onclick = () => (state.listening ? stopListening() : startListening());
$("play").onclick = () => (state.player ? stopPlaying() : play());
$("clear").onclick = () => $("answers").replaceChildren();
for (const [button, input] of [["open-wav", "wav-file"], ["open-model", "model-file"], ["open-model-2", "model-file"]]) {
  $(button).onclick = () => $(input).click();
}
for (const input of ["wav-file", "model-file"]) {
  $(input).onchange = async (event) => {
    const files = [...event.target.files];
    event.target.value = "";  // the same file may be chosen again
    await take(files);
  };
}

let inside = 0;  // elements that a dragged file is over
document.addEventListener("dragenter", () => { $("drop").hidden = ++inside === 0; });
document.addEventListener("dragleave", () => { $("drop").hidden = --inside <= 0; });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  $("drop").hidden = true;
  take([...event.dataTransfer.files]);
});

// Light and dark. ---------------------------------------------------------------------------------

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  if (!state.facts) return;
  [...$("bars").children].forEach((item, k) => item.style.setProperty("--of", colour(k)));
  if (state.best !== undefined) $("answer-class").style.color = colour(state.best);
  keyOfNorms();
  state.dirty = true;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
try { chosen = localStorage.getItem("theme"); } catch { /* files may have no storage */ }
setTheme(chosen || (dark.matches ? "dark" : "light"));
dark.onchange = (event) => { if (!chosen) setTheme(event.matches ? "dark" : "light"); };
$("theme").onclick = () => {
  chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", chosen); } catch { /* not kept */ }
  setTheme(chosen);
};

new ResizeObserver(() => { state.dirty = true; }).observe($("stage"));
requestAnimationFrame(draw);
firstModel();
