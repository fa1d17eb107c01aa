// Keys that nobody listed: what was found, what is new, and what it means that a key is not there. Whoever sends records writes the keys.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Worker } from "../../clients/javascript/test/found.js";
import { launch, open, saved, settled, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

async function look(synopses, options = {}) {
  const server = await serve(synopses, { now: () => new Date(Date.parse(synopses.at(-1).published) + 1000) });
  const { page, problems, context } = await open(browser, `${server.address}${options.fragment ?? ""}`, options);
  if (!options.fragment?.includes("wall")) await shown(page);
  return { page, problems, server, end: async () => { await context.close(); await server.stop(); } };
}

const text = (page, selector) => page.locator(selector).textContent();
const names = (page) => page.locator("#counted-rows .counted-key").allTextContents();
const find = async (page, wanted, found) => {
  await page.locator("#counted-find").fill(wanted);
  await until(wanted, async () => (await names(page)).join("|") === found, () => names(page));
};

/** Keys as somebody might send them: markup, formulas, characters that turn a line around, an escape of a terminal. */
const ODD = { "<script>alert(1)</script>": 300, "=1+1": 280, "\u202eabc": 260, "\u001b[2J": 240, "@SUM(A1)": 220, "-2+3": 210, "a\nb": 205, "\\u{202e}": 203 };
const pages = (from, to) => Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`/page/${from + i}`, 60 + 3 * i]));

/** Five windows in which about 200 keys are found; the last one has some that are new. */
function windows() {
  const worker = new Worker({ keep: 2 });
  return [
    worker.release({ "/": 900, "/once": 400 }),
    worker.release({ "/": 850, ...ODD }),
    worker.release({ "/": 870, ...ODD, ...pages(0, 100) }),
    worker.release({ "/": 910, ...ODD, ...pages(0, 180) }),
    worker.release({ "/": 880, ...ODD, ...pages(0, 192) }),
  ];
}

const rowsOf = ({ basis: { keys: { keys, found } }, values }) => keys.map((key, i) => ({ key, ...found.rows[i], value: values[i] }));

test("how many keys were found and are new stands above the largest, with what it means that one is not there", async () => {
  const synopses = windows();
  const newest = rowsOf(synopses.at(-1));
  const fresh = newest.filter((row) => row.is_new);
  assert.ok(newest.length >= 195 && fresh.length === 12, `${newest.length} keys, ${fresh.length} new`);
  const { page, problems, end } = await look(synopses);
  assert.equal(await text(page, "#counted-found"), `${newest.length} pages found, 12 of them new. A page that is not here had fewer than about 21 users.`);
  assert.match(await text(page, "#sentence"), /^\d+ pages found, 12 of them new\. A page that is not here had fewer than about 21 users\. Largest users: \/ with /);
  assert.match(await text(page, "#counted-caps"), /Counts of new keys are above the threshold by selection, which their intervals include\./);
  const order = [...newest].sort((a, b) => b.value - a.value).map(({ key }) => key);
  assert.deepEqual((await names(page))[0], order[0]);
  await page.getByRole("button", { name: `Show all ${newest.length}` }).click();
  await until("all keys", async () => (await names(page)).length === newest.length);
  const marked = await page.locator("#counted-rows tr:has(.new) .counted-key").allTextContents();
  assert.deepEqual(marked.sort(), fresh.map(({ key }) => key).sort());
  const title = await page.locator("#counted-rows .counted-key").first().getAttribute("title");
  assert.equal(title, "/ over time; published until 5 Jan 2026, 07:00 UTC");
  await page.getByRole("button", { name: "Show the largest 10" }).click();
  await until("ten keys", async () => (await names(page)).length === 10);
  await shoot(page, "found");
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  const about = await text(page, "#about");
  assert.match(about, /Nobody listed the keys\. One that a single user has is named with a probability of at most 1e-9\. A key stays for 2 hours after/);
  assert.doesNotMatch(about, /undefined|NaN/);
  assert.deepEqual(problems, []);
  await end();
});

test("keys are text whatever they hold, in rows, titles, links and files", async () => {
  const { page, problems, end } = await look(windows());
  await find(page, "script", "<script>alert(1)</script>");
  assert.equal(await page.locator("main script").count(), 0);
  await shoot(page, "found-script");
  await find(page, "abc", "\\u{202e}abc");
  await page.getByRole("button", { name: "\\u{202e}abc", exact: true }).click();
  await until("the key", async () => (await text(page, "#counted-place")) === "users of \\u{202e}abc");
  await until("the address", () => page.url().includes("row="));
  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
  const attributes = await page.evaluate(() => [...document.querySelectorAll("*")].flatMap((one) => [...one.attributes]).filter(({ name }) => name !== "data-key").map(({ value }) => value).join("\n"));
  for (const [what, said] of Object.entries({ address: page.url(), text: await text(page, "main"), attributes: attributes.replaceAll("\n", "") })) assert.doesNotMatch(said, unseen, what);
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await shown(page);
  assert.equal(await text(page, "#counted-place"), "users of \\u{202e}abc");
  await find(page, "\\u{202e}a", "\\u{202e}abc");
  await find(page, "\\\\u", "\\\\u{202e}");
  await page.locator("#counted-find").fill("nobody");
  await page.getByText("No key has this in its name. A page that is not here had fewer than about 21 users.").waitFor();
  const csv = (await saved(page, "#save-csv")).content.toString();
  assert.match(csv, /^key,users,users_lower,users_upper,new,until\r\n/);
  assert.doesNotMatch(csv.replaceAll("\r\n", ""), unseen);
  const cells = csv.trim().split("\r\n").slice(1).map((line) => line.split(",")[0]);
  for (const cell of ["'=1+1", "'@SUM(A1)", "'-2+3", "\\u{202e}abc", "\\u{1b}[2J", "a\\nb", "\\\\u{202e}", "<script>alert(1)</script>"]) assert.ok(cells.includes(cell), cell);
  assert.match(csv, /\r\n\/page\/191,[\d.]+,[\d.]+,[\d.]+,true,2026-01-05T07:00:00Z\r\n/);
  assert.ok((await saved(page, "#save-png")).content.length > 10_000);
  assert.deepEqual(problems, []);
  await end();
});

test("what cannot be read is told without what would turn the words around, and what is just above the threshold has an interval", async () => {
  const synopsis = new Worker().release({ "/": 90 });
  synopsis.values = [(84_277 + 1) / 4096];
  const { page, problems, server, end } = await look([synopsis]);
  assert.deepEqual(await page.locator("#counted-rows td:not([aria-hidden])").allTextContents(), ["21", "1 to 21"]);
  const { found } = synopsis.basis.keys;
  const keys = { ...synopsis.basis.keys, keys: ["\u202e/web/x"], found: { ...found, rows: found.rows } };
  server.publish({ ...synopsis, basis: { keys }, key_columns: ["page", "shop"], ledger: { ...synopsis.ledger, sequence: 900 } });
  await page.locator("#unreadable").waitFor();
  assert.match(await text(page, "#unreadable-list"), /the key '\\u\{202e\}\/web\/x' does not have 2 parts/);
  assert.deepEqual(problems, []);
  await end();
});

test("a window that lacks a key is a gap in its line, and not 0", async () => {
  const { page, problems, end } = await look(windows());
  // It was found in the first window only, and is published for two hours: two windows have it, and the last two do not.
  await page.locator("#back").click();
  await page.locator("#back").click();
  await page.locator("#back").click();
  await page.locator("#position", { hasText: "window 2 of 5" }).waitFor();
  await page.getByRole("button", { name: "/once", exact: true }).click();
  await until("the key", async () => (await text(page, "#counted-place")) === "users of /once");
  await page.locator("#newest").click();
  await page.locator("#position", { hasText: "window 5 of 5" }).waitFor();
  assert.equal(await text(page, "#counted-place"), "users of /once", "the key stays where a window lacks it");
  const label = await page.locator("#counted-chart").getAttribute("aria-label");
  assert.match(label, /^Users of \/once in 5 windows, each with its interval\. In this window, .*: not here, fewer than about 21\.$/);
  await page.check("#table-switch");
  await page.locator("#table tbody tr").nth(4).waitFor();
  const cells = (await page.locator("#table tbody tr").allTextContents()).map((row) => row.replace(/.*UTC/, ""));
  assert.match(cells[0], /^40\d\d+ to \d+$/);
  assert.deepEqual(cells.slice(3), Array(2).fill("not herefewer than about 21"));
  // Where the key is missing no line is drawn, at 0 neither.
  const drawn = await page.locator("#counted-chart").evaluate((canvas) => {
    const style = getComputedStyle(document.documentElement);
    const pen = document.createElement("canvas").getContext("2d");
    const lines = ["--curve", "--ghost"].map((name) => {
      pen.fillStyle = style.getPropertyValue(name);
      pen.fillRect(0, 0, 1, 1);
      return pen.getImageData(0, 0, 1, 1).data.join();
    });
    const column = (part) => {
      const { data } = canvas.getContext("2d").getImageData(Math.round(part * canvas.width), 0, 1, canvas.height);
      return Array.from({ length: canvas.height }, (_, i) => data.slice(4 * i, 4 * i + 4).join()).filter((one) => lines.includes(one)).length;
    };
    return [0.15, 0.3, 0.5, 0.7, 0.9].map(column);
  });
  assert.ok(drawn.slice(0, 3).every((count) => count > 0) && drawn[3] === 0 && drawn[4] === 0, `${drawn}`);
  await settled(page);
  await shoot(page, "found-gap");
  assert.deepEqual(problems, []);
  await end();
});

test("a window without keys, and one with too many, say so", async () => {
  const worker = new Worker({ keep: 1 });
  const synopses = [worker.release({ "/": 400 }), worker.release({}), worker.release({}), worker.release({ "/": 1 }, true)];
  const { page, problems, server, end } = await look(synopses);
  assert.equal(await text(page, "#counted-found"), "Too many different keys to look for new ones.");
  assert.ok(await page.locator("#counted-table").isHidden());
  await page.check("#table-switch");
  assert.match(await text(page, "#sentence"), /^Too many different keys to look for new ones\. No keys; window /);
  await page.locator("#back").click();
  await until("the window before", async () => (await text(page, "#counted-found")) === "0 pages found. A page that is not here had fewer than about 21 users.");
  await shoot(page, "found-none");
  assert.equal((await saved(page, "#save-csv")).content.toString(), "key,users,users_lower,users_upper,new,until\r\n");
  assert.equal((await saved(page, "#save-png")).content.subarray(1, 4).toString(), "PNG");
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  await page.locator("#about-close").click();
  assert.deepEqual(problems, []);
  server.publish(worker.release({ "/": 400, "/b": 500 }));
  await end();
  const wall = await look(synopses, { fragment: "#view=wall", width: 1400, height: 900 });
  await wall.page.locator(".tile").waitFor();
  await settled(wall.page);
  assert.match(await wall.page.locator(".tile canvas").getAttribute("aria-label"), /Too many different keys to look for new ones\. No keys/);
  assert.deepEqual(wall.problems, []);
  await wall.end();
});

test("keys of several columns are found too, and are not added up", async () => {
  for (const [name, words] of [
    ["counts-found", /^7 pages found, 4 of them new\. A page that is not here had fewer than about 41 users\.$/],
    ["counts-found-columns", /^4 keys found, 2 of them new\. A key that is not here had fewer than about 21 \w+\.$/],
    ["counts-found-empty", /^0 pages found\. A page that is not here had fewer than about 41 users\.$/],
    ["counts-found-overfull", /^Too many different keys to look for new ones\.$/],
  ]) {
    const { page, problems, end } = await look(given(name));
    assert.match(await text(page, "#counted-found"), words);
    assert.ok(await page.locator("#counted-part").isHidden());
    assert.doesNotMatch(await text(page, "#counted"), /add up|added up|NaN|undefined/);
    assert.deepEqual(problems, []);
    await end();
  }
});

test("thousands of keys are drawn, found by name, and fit a small screen", async (t) => {
  const counts = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`/item/${i}`, 50 + (i % 97)]));
  const worker = new Worker({ most: 10_000, keep: 5 });
  const synopses = [worker.release(counts), worker.release(counts)];
  const { page, problems, end } = await look(synopses.slice(0, 1), { width: 360, height: 740 });
  const started = Date.now();
  await find(page, "item/4999", "/item/4999");
  t.diagnostic(`5000 new keys: one was found in ${Date.now() - started} ms`);
  const [wide, all] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= all, `${wide} pixels`);
  await page.locator("#counted-find").fill("");
  await shoot(page, "found-narrow");
  assert.deepEqual(problems, []);
  await end();
  const dark = await look(windows(), { dark: true });
  await shoot(dark.page, "found-dark");
  await dark.end();
  const wall = await look(windows(), { fragment: "#view=wall", width: 1400, height: 900 });
  await wall.page.locator(".tile").waitFor();
  await settled(wall.page);
  await shoot(wall.page, "found-wall", false);
  assert.deepEqual(wall.problems, []);
  await wall.end();
});
