// Pictures of the page at work, and how many words of WAV files it hears by the microphone.
// node screenshot.mjs PROGRAM CHROMIUM PAGE MODEL OUT.png light|dark WIDTH HEIGHT WAVS...
// PAGE is its index.html. The first letters of the files' names, up to "_", are what is said in them.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { writeWav } from "./sound.mjs";

const [, executablePath, index, model, out, colorScheme, width, height, ...files] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "rotrnn-web-"));
const spoken = join(folder, "spoken.wav"), room = (n) => Array.from({ length: n }, () => 0.0006 * (Math.random() - 0.5));
const wavs = files.map((file) => readFileSync(file)), rate = wavs[0].readUInt32LE(24);
const samples = (wav) => Array.from({ length: (wav.length - 44) / 2 }, (_, i) => wav.readInt16LE(44 + 2 * i) / 32768);
writeWav(spoken, [...room(rate), ...wavs.flatMap((wav) => [...samples(wav), ...room(0.55 * rate)])], rate);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream", `--use-file-for-fake-audio-capture=${spoken}%noloop`] });
const page = await browser.newPage({ viewport: { width: Number(width), height: Number(height) }, colorScheme });
const until = async (seconds, test, argument) => {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end && !(await page.evaluate(test, argument));) await page.waitForTimeout(50);
};
await page.goto(pathToFileURL(index).href);
await page.setInputFiles("#model-file", model);
await until(20, () => window.rotrnn.facts);
await page.click("#microphone");
const seconds = wavs.reduce((sum, wav) => sum + (wav.length - 44) / 2 / rate + 0.55, 1);
await until(seconds + 2, (count) => document.querySelectorAll("#answers tr").length >= count, files.length);
await page.screenshot({ path: out, fullPage: true });
const heard = (await page.locator("#answers tr td:nth-child(2)").allTextContents()).reverse();
const truth = files.map((file) => basename(file).split("_")[0]);
const right = heard.length === truth.length ? heard.filter((word, i) => word === truth[i]).length : "?";
console.log(`${files.length} words, heard ${heard.length}, right ${right}: ${heard.join(" ")}`);
console.log(`said: ${truth.join(" ")}`);
console.log((await page.locator("#answers tr").first().textContent()));
await browser.close();
rmSync(folder, { recursive: true });
