// The page in headless Chromium: a small model is trained on synthesised words, then held-out ones
// are recognised by it from dropped files and from a microphone.
// node browser.mjs PROGRAM CHROMIUM PAGE FOLDED
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { kRate, kWords, randomNumbers, wavBytes, word, writeWav } from "./sound.mjs";

const [program, executablePath, pageFolder, folded] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "rotrnn-web-"));
const started = Date.now();
const note = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(1)} s: ${text}`);

// --- a model ---

const random = randomNumbers(11);
for (const [k, name] of kWords.entries()) {
  mkdirSync(join(folder, "words", name), { recursive: true });
  for (let i = 0; i < 24; ++i) writeWav(join(folder, "words", name, `${i}.wav`), word(k, random));
}
writeFileSync(join(folder, "config.toml"), `
[task]
name = "audio_folder"
path = "${join(folder, "words")}"
[model]
layer = "rotrnn"
width = 16
state = 16
heads = 4
depth = 2
norm = "batch"
dropout = 0.0
[model.init]
gamma_min = 0.9
gamma_max = 0.99
theta_max = 3.141592653589793
[training]
steps = 60
batch = 12
global_lr = 1e-2
recurrent_lr = 3e-3
evaluate_every = 60
checkpoint_every = 60
threads = 1
`);
function run(...words) {
  const done = spawnSync(program, words, { encoding: "utf8", cwd: folder });
  assert.equal(done.status, 0, `rotrnn ${words.join(" ")}: ${done.stdout}${done.stderr}`);
  return done.stdout;
}
const model = join(folder, "words.safetensors");
run("train", "config.toml", "--out", "run");
run("export", "run", "--out", model);
const held = Array.from({ length: 9 }, (_, i) => {
  const file = join(folder, `held-out ${i}.wav`), samples = word(i % 3, random);
  writeWav(file, samples);
  return { file, name: `held-out ${i}.wav`, samples, truth: kWords[i % 3] };
});
const native = run("predict", "run", "--json", ...held.map((one) => one.file)).trim().split("\n").map((line) => JSON.parse(line));
note("trained, exported");

// What a microphone would hear: a room, and words in it.
const pause = (seconds) => Array.from({ length: seconds * kRate }, () => 0.003 * (random() - 0.5));
const spoken = join(folder, "spoken.wav");
writeWav(spoken, [...pause(1), ...held.flatMap((one) => [...one.samples, ...pause(0.6)])]);

// --- the browser ---

const kTypes = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const served = join(folder, "web");
cpSync(pageFolder, served, { recursive: true });
rmSync(join(served, "model.safetensors"), { force: true });
const server = createServer((request, response) => {
  const name = request.url === "/" ? "index.html" : decodeURIComponent(request.url.slice(1));
  if (!readdirSync(served).includes(name)) return response.writeHead(404).end();
  response.writeHead(200, { "Content-Type": kTypes[extname(name)] || "application/octet-stream" });
  response.end(readFileSync(join(served, name)));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${server.address().port}/`;

const launch = (...more) => chromium.launch({ executablePath, args: ["--no-sandbox", ...more] });
async function openPage(browser, where, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1300, height: 1000 }, ...options });
  page.complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" && !/model\.safetensors|404/.test(message.text() + message.location().url)) page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(where.startsWith("file:") ? "file:" : where)) page.complaints.push(`asks ${request.url()}`);
  });
  await page.goto(where);
  return page;
}
async function closePage(page) {
  assert.deepEqual(page.complaints, [], "nothing is complained of, nothing is asked for elsewhere");
  await page.close();
}
// Playwright's own waiting evaluates text, which the policy of the page forbids.
async function until(page, what, test, argument) {
  for (const end = Date.now() + 30_000; !(await page.evaluate(test, argument));) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}; the page says: ${await page.locator("#status").textContent()} ${await page.locator("#error").textContent()}`);
    await page.waitForTimeout(40);
  }
}
const complaint = (page, words) => until(page, words, (words) => !document.getElementById("error").hidden
  && document.getElementById("error").textContent.includes(words), words);
const loaded = (page, name) => until(page, name, (name) => window.rotrnn.facts?.name === name, name);
const rows = (page) => page.locator("#answers tr").evaluateAll((list) => list.map((row) => [...row.cells].map((cell) => cell.textContent)));

// Files as a person drops them.
async function drop(page, files) {
  const content = files.map((file) => ({ name: file.split("/").pop(), text: readFileSync(file).toString("base64") }));
  await page.evaluate((content) => {
    const carried = new DataTransfer();
    for (const { name, text } of content) carried.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
    for (const kind of ["dragenter", "dragover", "drop"]) {
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
    }
  }, content);
}

const painted = (page, id) => page.locator("#" + id).evaluate((canvas) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  return colours.size;
});

try {
  let browser = await launch();

  // Without a model; and what is not one.
  let page = await openPage(browser, address);
  await until(page, "the instructions", () => !document.getElementById("empty").hidden);
  assert.ok(await page.locator("#microphone").isDisabled());
  assert.match(await page.locator("#empty pre").textContent(), /rotrnn train configs\/small\/spoken_digits\.toml/);
  const other = (name, bytes) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const cases = JSON.parse(readFileSync(join(folded, "cases.json"))).cases;
  const caseFile = (name) => join(folded, cases.find((one) => one.name === name).file);
  const wrong = [
    [other("notes.txt", "hello"), "notes.txt: neither a model"],
    [other("cut.safetensors", readFileSync(model).subarray(0, 3000)), "cut.safetensors: "],
    [other("noise.safetensors", Buffer.alloc(5000, 0x5a)), "noise.safetensors: "],
    [join(folder, "run/best/weights.safetensors"), "rotrnn export"],
    [caseFile("tokens"), "token numbers, not sound"],
    [caseFile("bytes"), "text, not sound"],
    [caseFile("values"), "4 channels"],
    [held[0].file, "no model"],
  ];
  for (const [file, words] of wrong) {
    await drop(page, [file]);
    await complaint(page, words);
    assert.ok(await page.locator("#stage").isHidden());
  }
  note("what is not a model is refused with words");

  // Dropped together: the model is for the clips.
  await drop(page, [...held.map((one) => one.file), model]);
  await until(page, "nine answers", () => document.querySelectorAll("#answers tr").length === 9);
  const clips = (await rows(page)).reverse();
  clips.forEach(([name, predicted, sure], i) => {
    assert.equal(name, held[i].name);
    assert.equal(predicted, held[i].truth, name);
    assert.equal(predicted, native[i].label, "as the program has it");
    assert.match(sure, /%$/);
  });
  assert.equal(await page.locator("#answer-class").textContent(), held[8].truth);
  assert.equal(await page.locator("#bars li").count(), 3);
  assert.equal(await page.locator("#bars li.best .name").textContent(), held[8].truth);
  const facts = await page.evaluate(() => window.rotrnn.facts);
  assert.deepEqual(facts.classes, [...kWords].sort());
  assert.equal(facts.rate, kRate);
  assert.match(await page.locator("#facts").textContent(), /8,000 Hz/);
  note(`nine dropped clips are right; ${facts.latency.toFixed(1)} µs a sample, ${facts.realTime.toFixed(0)} × real time`);

  // The charts have something on them: lines of two classes or blocks at least, on a grid.
  await page.waitForTimeout(100);
  for (const id of ["wave", "classes", "norms"]) assert.ok(await painted(page, id) >= 2, id);
  const trace = await page.evaluate(() => ({ frames: window.rotrnn.trace.frames.length, norms: window.rotrnn.trace.frames.map((f) => Math.max(...f.norms)) }));
  assert.ok(trace.frames > 100 && Math.max(...trace.norms) > 0);

  // Other rates are resampled; a long file is cut at its pauses.
  const slow = held[5].samples, fast = Array.from({ length: 2 * slow.length }, (_, i) => (i % 2 ? ((slow[(i - 1) / 2] + (slow[(i + 1) / 2] ?? 0)) / 2) : slow[i / 2]));
  const faster = other("faster.wav", wavBytes(fast, 2 * kRate));
  await page.setInputFiles("#wav-file", [faster]);
  await until(page, "the clip of another rate", () => document.querySelectorAll("#answers tr").length === 10);
  assert.deepEqual((await rows(page))[0].slice(0, 2), ["faster.wav", held[5].truth]);
  await page.click("#clear");
  await page.setInputFiles("#wav-file", [spoken]);
  await until(page, "the words of a long file", () => document.querySelectorAll("#answers tr").length === 9);
  assert.deepEqual((await rows(page)).reverse().map((row) => row[1]), held.map((one) => one.truth));
  await page.click("#clear");
  await page.setInputFiles("#wav-file", [other("silence.wav", wavBytes(pause(4)))]);
  await complaint(page, "no word in it");
  assert.equal((await rows(page)).length, 0);
  await drop(page, [other("broken.wav", wavBytes([]))]);
  await complaint(page, "broken.wav: the WAV file holds no sound");

  // Playing it moves through the answers.
  await page.setInputFiles("#wav-file", [held[0].file]);
  await page.locator("#play").waitFor();
  await page.click("#play");
  await until(page, "the sound", () => window.rotrnn.player !== null);
  await until(page, "its end", () => window.rotrnn.player === null);

  // By keyboard, in the dark, on a phone.
  await page.keyboard.press("Escape");
  const reached = new Set();
  for (let i = 0; i < 12; ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id));
  }
  for (const id of ["theme", "microphone", "open-wav", "open-model", "play", "clear"]) assert.ok(reached.has(id), id);
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.focus("#theme");
  await page.keyboard.press("Enter");
  assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), theme);
  for (const width of [340, 700]) {
    await page.setViewportSize({ width, height: 800 });
    assert.ok(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), `${width} pixels are enough`);
  }

  // A model of both directions has no microphone, but clips.
  const both = join(folder, "both.safetensors");
  copyFileSync(caseFile("audio, both directions"), both);
  await page.setInputFiles("#model-file", [both]);
  await loaded(page, "both.safetensors");
  assert.ok(await page.locator("#microphone").isDisabled());
  await page.click("#clear");
  await page.setInputFiles("#wav-file", [held[0].file]);
  await until(page, "an answer", () => document.querySelectorAll("#answers tr").length === 1);

  // Without a microphone.
  await page.setInputFiles("#model-file", [model]);
  await loaded(page, "words.safetensors");
  await page.click("#microphone");
  await complaint(page, "There is no microphone");
  assert.ok(await page.locator("#microphone").isEnabled());
  await closePage(page);
  note("other rates, long files, playing, keyboard, themes, narrow screens, both directions, no microphone");

  // From a disk.
  page = await openPage(browser, pathToFileURL(join(served, "index.html")).href);
  await until(page, "the instructions", () => !document.getElementById("empty").hidden);
  await drop(page, [model, held[4].file]);
  await until(page, "an answer", () => document.querySelectorAll("#answers tr").length === 1);
  assert.equal((await rows(page))[0][1], held[4].truth);
  await closePage(page);
  await browser.close();

  // With one that is not allowed.
  browser = await launch("--use-fake-device-for-media-stream", "--deny-permission-prompts");
  page = await openPage(browser, address);
  await page.setInputFiles("#model-file", [model]);
  await loaded(page, "words.safetensors");
  await page.click("#microphone");
  await complaint(page, "The microphone was not allowed");
  assert.ok(await page.locator("#microphone").isEnabled());
  await closePage(page);
  await browser.close();
  note("from a disk, without permission");

  // The microphone, which says what is in the file; and a model that lies beside the page.
  copyFileSync(model, join(served, "model.safetensors"));
  browser = await launch("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
                         `--use-file-for-fake-audio-capture=${spoken}%noloop`);
  page = await openPage(browser, address);
  await loaded(page, "model.safetensors");
  await page.focus("#microphone");
  await page.keyboard.press("Enter");
  await until(page, "sound", () => window.rotrnn.trace?.live && window.rotrnn.trace.end > 0);
  assert.equal(await page.locator("#microphone").getAttribute("aria-pressed"), "true");
  await until(page, "nine words", () => document.querySelectorAll("#answers tr").length >= 9);
  assert.deepEqual((await rows(page)).reverse().map((row) => row[1]), held.map((one) => one.truth));
  for (const id of ["wave", "classes", "norms"]) assert.ok(await painted(page, id) >= 2, id);
  const speeds = (await rows(page)).map((row) => row[4]);
  await page.keyboard.press("Enter");
  await until(page, "its end", () => !window.rotrnn.listening);
  assert.equal(await page.locator("#microphone-text").textContent(), "Start the microphone");
  await closePage(page);

  // So does a page from a disk.
  page = await openPage(browser, pathToFileURL(join(served, "index.html")).href);
  await page.setInputFiles("#model-file", [model]);
  await loaded(page, "words.safetensors");
  await page.click("#microphone");
  await until(page, "sound on a page from a disk", () => window.rotrnn.trace?.end > 0);
  await closePage(page);
  await browser.close();
  note(`nine words by the microphone are right, ${speeds[0]} real time`);
} finally {
  server.close();
  rmSync(folder, { recursive: true });
}
process.exit(0);
