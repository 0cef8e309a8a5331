// node screenshot.mjs PROGRAM CHROMIUM ADDRESS OUT.png [light|dark] [HEIGHT] [SMOOTHING]: a picture of a page.
import { chromium } from "playwright-core";

const [, executablePath, address, out, theme = "light", height = "1150", smoothing = "0"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: Number(height) }, colorScheme: theme });
await page.goto(address);
await page.waitForSelector("#chart-loss canvas");
await page.waitForTimeout(1200);
await page.locator("#smoothing").fill(smoothing);
await page.locator("#smoothing").blur();
const box = await page.locator("#chart-loss .chart").boundingBox();
await page.mouse.move(box.x + 0.6 * box.width, box.y + 90);
await page.waitForTimeout(400);
await page.screenshot({ path: out });
await browser.close();
