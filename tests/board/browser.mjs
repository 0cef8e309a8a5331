// Drives the board and a report in headless Chromium on runs made here in the public format.
// node browser.mjs PROGRAM CHROMIUM
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [program, executablePath] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "rotrnn-board-"));
const runs = join(folder, "runs");
const markup = "<img src=x onerror=window.hacked=1>";
const started = Date.now();
const note = (text) => console.log(`${((Date.now() - started) / 1000).toFixed(1)} s: ${text}`);

// --- runs ---

const trainLine = (step, loss) => JSON.stringify({
  step, split: "train", loss, global_lr: 1e-3 * (1 - step / 1e6), recurrent_lr: 5e-4, gradient_norm: 1 + loss,
  tokens: step * 100, seconds: step / 10, tokens_per_second: 1e5, memory_mb: 200,
}) + "\n";

function makeRun(name, { seed, layer, steps = 200, every = 10, shift = 0 }) {
  mkdirSync(join(runs, name), { recursive: true });
  writeFileSync(join(runs, name, "config.toml"), `[model]\nlayer = "${layer}"\n[training]\nseed = ${seed}\nsteps = 1000\n`);
  let text = "";
  const lambda = (step) => JSON.stringify({ step, split: "lambda", layers: [0, 1].map((k) => ({
    re: [0, 1, 2, 3].map((i) => 0.9 * Math.cos(i + k + step / 100)), im: [0, 1, 2, 3].map((i) => 0.9 * Math.sin(i + k + step / 100)), of: 4 })) }) + "\n";
  text += lambda(0) + JSON.stringify({ step: 0, split: "norms", whole: [5, 6], head: [1, 1.2] }) + "\n";
  for (let step = every; step <= steps; step += every) {
    text += trainLine(step, shift + 2 * Math.exp(-step / 100));
    if (step % (10 * every)) continue;
    text += JSON.stringify({ step, split: "validation", loss: 1, accuracy: 0.5 + step / 1000, examples: 9,
      confusion: [[5, 1], [2, 7]], classes: [markup, "yes"] }) + "\n";
    text += lambda(step) + JSON.stringify({ step, split: "norms", whole: [5.5, 6.5], head: [1, 1.2] }) + "\n";
  }
  writeFileSync(join(runs, name, "metrics.jsonl"), text);
  return join(runs, name, "metrics.jsonl");
}

const alpha = makeRun("alpha-seed-1", { seed: 1, layer: "rotrnn" });
makeRun("alpha-seed-2", { seed: 2, layer: "rotrnn", shift: 0.5 });
makeRun(markup, { seed: 1, layer: "lru", shift: 1 });
writeFileSync(join(runs, "compare.json"), JSON.stringify({ task: "listops", command: `rotrnn compare ${markup}`, seeds: 2, finished: true,
  budget: { steps: 200 }, variants: [{ name: markup, state: 8, parameters: 1234, finished: 2, cells: [{}, {}],
    test_accuracy: { mean: 0.52, deviation: 0.01 }, majority_share: 0.1, steps: 200, tokens_per_second: 1e5, peak_memory_mb: 80, minutes_per_cell: 0.5 }] }));

// --- the program and the browser ---

function startBoard(where, ...options) {
  const child = spawn(program, ["board", where, "--port", "0", ...options]);
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (bytes) => {
      text += bytes;
      const address = /http:\S+/.exec(text);
      if (address) resolve({ child, address: address[0] });
    });
    child.stderr.on("data", (bytes) => process.stderr.write(bytes));
    child.on("exit", (code) => reject(new Error(`board ended with ${code}: ${text}`)));
  });
}

async function stopBoard({ child }) {
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill("SIGINT");
  assert.equal(await ended, 0, "Ctrl-C ends the board well");
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
async function openPage(address) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  page.complaints = [];
  page.elsewhere = [];
  page.on("console", (message) => { if (message.type() === "error") page.complaints.push(message.text()); });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(new URL(address).protocol === "file:" ? "file:" : new URL(address).origin) && !request.url().startsWith("data:")) page.elsewhere.push(request.url()); });
  await page.goto(address);
  return page;
}
async function closePage(page) {
  assert.deepEqual(page.complaints, [], "nothing is complained of, the policy included");
  assert.deepEqual(page.elsewhere, [], "nothing is asked for elsewhere");
  assert.equal(await page.evaluate(() => window.hacked), undefined, "markup in names does not run");
  assert.equal(await page.locator("img").count(), 0);
  await page.close();
}
// Playwright's own waiting evaluates text, which the policy of the pages forbids.
async function until(page, test, argument) {
  for (const end = Date.now() + 15_000; !(await page.evaluate(test, argument));) {
    if (Date.now() > end) throw new Error("waited in vain for " + test);
    await page.waitForTimeout(30);
  }
}
const ranges = (page, name) => page.evaluate((name) => {
  const view = name === "report" ? rotrnn.report : rotrnn.live.view;
  return view.curves.filter((curve) => curve.graph && !curve.card.hidden).map((curve) => curve.graph.xAxisRange());
}, name);

// What a reader does on either page.
async function useCharts(page, name) {
  await page.waitForSelector("#chart-loss canvas");
  for (const chart of ["loss", "accuracy", "rates", "gradient", "norms", "norms_head", "speed", "memory"]) {
    assert.ok(await page.locator("#chart-" + chart).isVisible(), chart);
  }
  assert.ok(!(await page.locator("#chart-error").isVisible()), "no errors of values in runs of classes");

  const [box0, plot] = [await page.locator("#chart-loss .chart").boundingBox(), await page.locator("#chart-loss canvas").first().boundingBox()];
  assert.ok(Math.abs(box0.width - plot.width) < 2 && box0.height < 240, "charts fill their cards");

  // Two seeds are one line with a band, and a third run another.
  const lines = () => page.evaluate((name) => (name === "report" ? rotrnn.report : rotrnn.live.view).curves[0].lines
    .map((line) => ({ name: line.name, bars: Boolean(line.bars), first: line.y[0], deviation: line.deviation && line.deviation[0] })), name);
  let drawn = await lines();
  assert.equal(drawn.length, 4);
  const mean = drawn.find((line) => line.bars);
  assert.equal(mean.name, "alpha (2 seeds), train");
  assert.ok(Math.abs(mean.first - (2 * Math.exp(-0.1) + 0.25)) < 1e-4);
  assert.ok(Math.abs(mean.deviation - 0.5 / Math.SQRT2) < 1e-4);
  await page.click("#toggle-seeds");
  await until(page, (name) => (name === "report" ? rotrnn.report : rotrnn.live.view).curves[0].lines.length === 6, name);

  // Choosing runs.
  await page.getByRole("checkbox", { name: /img/ }).uncheck();
  await until(page, (name) => (name === "report" ? rotrnn.report : rotrnn.live.view).curves[0].lines.length === 4, name);
  await page.getByRole("checkbox", { name: /img/ }).check();

  // Smoothing draws what was measured faintly behind it.
  await page.locator("#smoothing").fill("0.6");
  await until(page, (name) => (name === "report" ? rotrnn.report : rotrnn.live.view).curves[0].lines.some((line) => line.faint), name);
  await page.locator("#smoothing").fill("0");
  await page.click("#toggle-log");
  await until(page, (name) => (name === "report" ? rotrnn.report : rotrnn.live.view).curves[0].graph.getOption("logscale"), name);
  await page.click("#toggle-log");

  // A zoom is that of all charts.
  const before = await ranges(page, name);
  const box = await page.locator("#chart-loss .chart").boundingBox();
  await page.mouse.move(box.x + 0.4 * box.width, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.7 * box.width, box.y + 104, { steps: 5 });
  await page.mouse.up();
  const zoomed = await ranges(page, name);
  for (const range of zoomed) {
    assert.deepEqual(range, zoomed[0]);
    assert.ok(range[0] > before[0][0] && range[1] < before[0][1]);
  }
  await page.mouse.move(box.x + 0.5 * box.width, box.y + 100);
  assert.match(await page.locator("#chart-loss .tip").textContent(), /step .*alpha-seed-1, train/);
  await page.mouse.dblclick(box.x + 0.5 * box.width, box.y + 100);
  await until(page, (name) => !(name === "report" ? rotrnn.report : rotrnn.live.view).zoom, name);
  await page.waitForTimeout(100);  // it is drawn with the next picture
  assert.deepEqual(await ranges(page, name), before);

  // Eigenvalues move with the slider, and play.
  const picture = () => page.locator("#eigenvalues canvas").first().evaluate((canvas) => canvas.toDataURL());
  assert.equal(await page.locator("#eigenvalues canvas").count(), 2);
  await page.locator("#eigenvalues input[type=range]").scrollIntoViewIfNeeded();
  const end = await picture();
  await page.locator("#eigenvalues input[type=range]").press("Home");
  assert.equal(await page.locator("#eigenvalues output").textContent(), "step 0");
  assert.notEqual(await picture(), end);
  await page.getByRole("button", { name: /Play/ }).click();
  await until(page, () => document.querySelector("#eigenvalues output").textContent === "step 200");
  await page.getByRole("button", { name: /Play/ }).waitFor();

  // Tables: names are text, whatever they hold.
  assert.equal(await page.locator("#comparisons td").nth(0).textContent(), markup);
  assert.equal(await page.locator("#comparisons td").nth(1).textContent(), "52.00 ± 1.00 %");
  assert.deepEqual(await page.locator("#confusion tbody td").allTextContents(), ["5", "1", "2", "7"]);
  assert.equal(await page.locator("#confusion tbody th").first().textContent(), markup);
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.click("#theme");
  assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), theme);
  await page.click("#theme");
}

try {
  const board = await startBoard(runs);
  let page = await openPage(board.address);
  await useCharts(page, "board");
  note("charts, choice, smoothing, zoom, eigenvalues and tables of the board");

  // Live: lines come, one of them torn; then the run goes back; then a run is new, and one is gone.
  const step = () => page.locator("#runs tbody tr").nth(1).locator("td").nth(2).textContent();
  assert.equal(await step(), "200 / 1,000");
  appendFileSync(alpha, trainLine(210, 0.25) + trainLine(220, 0.125).slice(0, 30));
  await until(page, () => document.querySelector("#runs tbody tr:nth-child(2) td:nth-child(3)").textContent === "210 / 1,000");
  appendFileSync(alpha, trainLine(220, 0.125).slice(30) + trainLine(150, 7));
  await until(page, () => document.querySelector("#runs tbody tr:nth-child(2) td:nth-child(3)").textContent === "150 / 1,000");
  assert.equal(await page.locator("#runs tbody tr").nth(1).locator("td").nth(3).textContent(), "7");
  makeRun("gamma", { seed: 3, layer: "s5" });
  await page.getByRole("checkbox", { name: /gamma/ }).waitFor();
  assert.ok(await page.getByRole("checkbox", { name: /gamma/ }).isChecked());
  rmSync(join(runs, "gamma"), { recursive: true });
  await page.getByRole("checkbox", { name: /gamma/ }).waitFor({ state: "detached" });
  note("live update, rewind, new and removed runs");
  await closePage(page);
  await stopBoard(board);

  // A long run, with a spike in it that no decimation may lose.
  const long = join(folder, "long");
  mkdirSync(join(long, "run"), { recursive: true });
  let text = "";
  for (let i = 1; i <= 100_000; ++i) text += trainLine(i, i === 54_321 ? 9 : 1 + 0.1 * Math.sin(i));
  writeFileSync(join(long, "run/metrics.jsonl"), text);
  const longBoard = await startBoard(long);
  page = await openPage(longBoard.address);
  await until(page, () => rotrnn.live.view.curves[0].lines.length > 0);
  note(`100,000 lines open in ${(await page.evaluate(() => performance.now()) / 1000).toFixed(2)} s`);
  const points = () => page.evaluate(() => rotrnn.live.view.curves[0].lines[0]).then(({ x, y }) => ({ x, y }));
  let curve = await points();
  assert.ok(curve.x.length < 1300 && Math.max(...curve.y) === 9);
  const box = await page.locator("#chart-loss .chart").boundingBox();
  for (const range of [[50_000, 60_000], [54_000, 54_700]]) {
    const at = await page.evaluate((range) => range.map((x) => rotrnn.live.view.curves[0].graph.toDomXCoord(x)), range);
    await page.mouse.move(box.x + at[0], box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + at[1], box.y + 84, { steps: 4 });
    await page.mouse.up();
  }
  await until(page, () => rotrnn.live.view.selected()[0].zoomed);
  await until(page, () => { const x = rotrnn.live.view.curves[0].lines[0].x; return x[1] - x[0] === 1; });
  curve = await points();
  assert.equal(curve.y[curve.x.indexOf(54_321)], 9);
  const drawing = await page.evaluate(() => {
    const begin = performance.now();
    for (let i = 0; i < 10; ++i) rotrnn.live.view.draw();
    return (performance.now() - begin) / 10;
  });
  note(`zoom into it brings every line; all charts are drawn in ${drawing.toFixed(0)} ms`);
  await closePage(page);
  await stopBoard(longBoard);

  // The address of a board that wants a token is enough, and needed.
  const guarded = await startBoard(runs, "--token");
  page = await openPage(guarded.address);
  await page.waitForSelector("#chart-loss canvas");
  assert.ok(!page.url().includes("token"));
  await closePage(page);
  assert.equal((await fetch(new URL("/api/runs", guarded.address))).status, 403);
  await stopBoard(guarded);
  note("token");

  // The report, opened as a file.
  makeRun("alpha-seed-1", { seed: 1, layer: "rotrnn" });
  const file = join(folder, "report.html");
  const made = spawnSync(program, ["report", runs, "--out", file], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  page = await openPage(pathToFileURL(file).href);
  await useCharts(page, "report");
  await closePage(page);
  note("report");
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
