// A real browser on the page, and what tests ask of it.

import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const SHOTS = process.env.SHOTS ?? fileURLToPath(new URL("../shots", import.meta.url));

export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});

/** Opens the page at `address`; `problems` gathers everything that the console complains of. */
export async function open(browser, address, { dark = false, width = 1280, height = 900, calm = false, scale = 1 } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, deviceScaleFactor: scale, colorScheme: dark ? "dark" : "light",
    reducedMotion: calm ? "reduce" : "no-preference", acceptDownloads: true, locale: "en-GB",
  });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.stack ?? error.message));
  await page.goto(address);
  return { page, problems, context };
}

/** Waits until a window is drawn, and says which: [release, key, start of the window, row of the ledger]. */
export async function shown(page, isWanted = () => true) {
  const until = Date.now() + 10_000;
  for (;;) {
    const text = await page.locator("#all").getAttribute("data-shown").catch(() => null);
    if (text && isWanted(...JSON.parse(text))) return JSON.parse(text);
    if (Date.now() > until) throw new Error(`not the window that was waited for, but ${text}`);
    await page.waitForTimeout(20);
  }
}

/** What a button saves. */
export async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator(button).click()]);
  return { name: download.suggestedFilename(), content: readFileSync(await download.path()) };
}

/** Rows of a CSV without quoted cells, each with the names of its head. */
export function rows(csv) {
  const [head, ...lines] = csv.toString().trim().split("\r\n").map((line) => line.split(","));
  return lines.map((cells) => Object.fromEntries(cells.map((cell, i) => [head[i], Number(cell)])));
}

export async function shoot(page, name, full = true) {
  await mkdir(SHOTS, { recursive: true });
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: full, animations: "disabled" });
}
