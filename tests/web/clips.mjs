// What the page says of WAV files that are dropped on it: "FILE CLASS" lines, and how many are right.
// node clips.mjs PROGRAM CHROMIUM PAGE MODEL WAVS...
// PAGE is its index.html. The first letters of the files' names, up to "_", are what is said in them.
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [, executablePath, index, model, ...files] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1360, height: 1000 } });
// The page allows no eval, so waitForFunction cannot be used.
const until = async (seconds, what, test, argument) => {
  for (const end = Date.now() + 1000 * seconds; !(await page.evaluate(test, argument)); await page.waitForTimeout(100)) {
    if (Date.now() > end) throw new Error(`${what} took more than ${seconds} s`);
  }
};
await page.goto(pathToFileURL(index).href);
await page.setInputFiles("#model-file", model);
await until(20, "loading the model", (name) => window.rotrnn.facts?.name === name, basename(model));
await page.setInputFiles("#wav-file", files);
await until(60 + files.length, "the answers", (count) => document.querySelectorAll("#answers tr").length >= count, files.length);
const rows = (await page.locator("#answers tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent))))
  .reverse();
await browser.close();

let right = 0, seconds = 0, busy = 0;
rows.forEach(([name, said, , length, speed], i) => {
  if (name !== basename(files[i])) throw new Error(`${files[i]} was answered as ${name}`);
  if (name.split("_")[0] === said) ++right;
  seconds += parseFloat(length);
  busy += parseFloat(length) / parseFloat(speed);
  console.log(`${name} ${said}`);
});
console.error(`${right} of ${rows.length} right; ${seconds.toFixed(1)} s of sound, ${(seconds / busy).toFixed(1)} x real time`);
