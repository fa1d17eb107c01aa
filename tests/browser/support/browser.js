// A real browser on the page, and what tests ask of it.

import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** Milliseconds. Nothing that works takes as long, on a slow machine that has other work too. */
export const PATIENCE = Number(process.env.PATIENCE ?? 300_000);

/** Looks again until `found` finds something that is true, and gives it; `told` says what there was instead. */
export async function until(what, found, told = () => "") {
  for (const end = Date.now() + PATIENCE; ;) {
    const is = await found();
    if (is) return is;
    if (Date.now() > end) throw new Error(`${what} did not come: ${await told()}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

const SHOTS = process.env.SHOTS ?? fileURLToPath(new URL("../shots", import.meta.url));

export const launch = () => chromium.launch({
  timeout: PATIENCE,
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
});

/** Opens the page at `address`, at `time` if it is to stand still; `problems` gathers everything that the console complains of. */
export async function open(browser, address, { dark = false, width = 1280, height = 900, calm = false, scale = 1, time = null } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, deviceScaleFactor: scale, colorScheme: dark ? "dark" : "light",
    reducedMotion: calm ? "reduce" : "no-preference", acceptDownloads: true, locale: "en-GB",
  });
  context.setDefaultTimeout(PATIENCE);
  if (time !== null) await context.clock.setFixedTime(time);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.stack ?? error.message));
  await page.goto(address);
  return { page, problems, context };
}

/** Waits until a window is drawn, and says which: [release, key, start of the window, row of the ledger]. */
export async function shown(page, isWanted = () => true) {
  let text = null;
  return until("the window", async () => {
    text = await page.locator("#all").getAttribute("data-shown").catch(() => null);
    return text && isWanted(...JSON.parse(text)) && JSON.parse(text);
  }, () => text);
}

/** Waits until what was changed is drawn, which is in the next frame. */
export const settled = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
}));

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
  // What the server is asked for only where somebody looks is in the picture too, if it answers.
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await page.waitForFunction(() => !document.body.textContent.includes("Asking the server"), null, { timeout: 10_000 }).catch(() => {});
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: full, animations: "disabled" });
}
