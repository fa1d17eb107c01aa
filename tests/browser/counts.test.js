// Counts by key: what is shown is what was published, with its noise; names are text; all of it without a mouse or eyes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, open, saved, settled, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

async function look(options = {}, change = (synopsis) => synopsis, fixtures = given("counts")) {
  const synopses = fixtures.map(change);
  const server = await serve(synopses, { now: () => new Date(Date.parse(synopses.at(-1).published) + 1000) });
  const { page, problems, context } = await open(browser, `${server.address}${options.fragment ?? ""}`, options);
  if (!options.fragment?.includes("wall")) await shown(page);
  return { page, problems, server, synopses, context, end: async () => { await context.close(); await server.stop(); } };
}

const text = (page, selector) => page.locator(selector).textContent();
const names = (page) => page.locator("#counted-rows th").allTextContents();
const words = (page, selector) => page.locator(`#counted-rows ${selector}`).allTextContents();
const column = ({ basis: { keys }, values }, statistic) => {
  const at = keys.columns.findIndex((one) => one.statistic === statistic) * keys.keys.length;
  return values.slice(at, at + keys.keys.length);
};

test("the largest keys stand first, each with the interval of its noise", async () => {
  const { page, problems, synopses, end } = await look();
  const newest = synopses.at(-1);
  const users = column(newest, "users");
  const order = [...users.keys()].sort((a, b) => users[b] - users[a]);
  assert.deepEqual((await names(page)).slice(0, 4), order.slice(0, 4).map((i) => newest.basis.keys.keys[i]));
  assert.equal((await names(page)).length, 10);
  const unit = newest.basis.keys.columns[0].unit * newest.noise.scale;
  const half = unit * Math.log(20) * 1.001;
  const value = users[order[0]];
  assert.equal((await words(page, ".number"))[0], String(Math.round(value)));
  assert.equal((await words(page, ".ends"))[0], `${Math.round(value - half)} to ${Math.round(value + half)}`);
  assert.match(await text(page, "#sentence"), /^Largest users: FR with \d+, \d+ to \d+; with this noise|^Largest users: \w+ with \d+, \d+ to \d+\./);
  assert.match(await text(page, "#counted-caps"), /at most 2 keys of a window, with at most 4 records of each: what a user has beyond that is left out/);
  assert.equal(await text(page, "#title"), "Different users, sum of amount, mean of amount of each country");
  for (const id of ["stage", "questions", "legend", "overtime", "multiples", "keys", "range"]) assert.ok(await page.locator(`#${id}`).isHidden(), id);
  await shoot(page, "counts");
  assert.deepEqual(problems, []);
  await end();
});

test("a running sum says since when it counts, and that caps are for each window", async () => {
  const start = given("counts")[0].window.start;
  const running = (one, step) => ({ ...one, window: { start, end: one.window.end }, panes: { over: "cumulative", newest: one.window, step } });
  const { page, problems, end } = await look({}, running);
  assert.match(await text(page, "#sentence"), /since \d+ \w+ \d{4}, \d\d:\d\d UTC, until \d+ \w+ \d{4}, \d\d:\d\d UTC\.$/);
  assert.match(await text(page, "#counted-caps"), /at most 2 keys of each window that is added up, with at most 4 records of each/);
  assert.match(await text(page, "#counted-hint"), /Neighbouring windows share records and noise/);
  assert.deepEqual(problems, []);
  await end();
});

test("what the noise may have made of nothing is never a number, nor negative", async () => {
  const { page, synopses, end } = await look({}, (one) => ({ ...one, values: one.values.map((value, i) => (i === 13 ? -500 : value)) }));
  await page.getByRole("button", { name: "Show all 14" }).click();
  await until("all keys", async () => (await names(page)).length === 14);
  const rows = await page.locator("#counted-rows tr").evaluateAll((all) => all.map((row) => [row.className, ...[...row.cells].map((cell) => cell.textContent)]));
  const [className, name, , number, ends] = rows.at(-1);
  assert.deepEqual([className, name, number], ["faint", synopses.at(-1).basis.keys.keys[13], "below the noise"]);
  assert.match(ends, /^0 to [1-9]/);
  assert.doesNotMatch(rows.flat().join(" "), /[\u2212-]\d|NaN|undefined|null/);
  await page.getByRole("button", { name: "Show the largest 10" }).click();
  await until("ten keys", async () => (await names(page)).length === 10);
  await end();
});

test("users, records, sum and mean of the same numbers, and the choice stands in the address", async () => {
  const { page, problems, synopses, server, end } = await look();
  const newest = synopses.at(-1);
  const [low, high] = [column(newest, "low"), column(newest, "high")];
  const place = newest.basis.keys.keys.indexOf("DE");
  const of = { records: low[place] + high[place], "sum of amount": 100 * high[place], "mean of amount": 100 * high[place] / (low[place] + high[place]) };
  for (const [name, value] of Object.entries(of)) {
    await page.locator("#counted-by").selectOption({ label: name });
    await until(name, async () => await text(page, "#counted-number") === name);
    const row = page.locator("#counted-rows tr", { has: page.getByRole("button", { name: "DE", exact: true }) });
    const said = Number((await row.locator(".number").textContent()).replaceAll(",", ""));
    const [lower, upper] = (await row.locator(".ends").textContent()).split(" to ").map(Number);
    assert.ok(Math.abs(said - value) <= (upper - lower) / 4 && lower < value && value < upper, `${name}: ${said}, not ${value}`);
  }
  // A mean whose records may all be noise is unknown, and stands last.
  await page.getByRole("button", { name: "Show all 14" }).click();
  await until("all keys", async () => (await names(page)).length === 14);
  assert.equal((await words(page, ".number")).at(-1), "unknown");
  await page.getByRole("button", { name: "IT", exact: true }).click();
  await until("the key", async () => (await text(page, "#counted-place")) === "mean of amount of IT");
  await until("the address", () => /by=mean&row=IT/.test(page.url()));
  await shoot(page, "counts-mean");
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await shown(page);
  assert.equal(await text(page, "#counted-place"), "mean of amount of IT");
  assert.deepEqual(problems, []);
  assert.ok(server.address);
  await end();
});

test("a key over time, as a chart with words and as a table", async () => {
  const { page, problems, end } = await look();
  await page.getByRole("button", { name: "CH", exact: true }).click();
  await until("the key", async () => (await text(page, "#counted-place")) === "users of CH");
  assert.match(await page.locator("#counted-chart").getAttribute("aria-label"), /^Users of CH in 5 windows, each with its interval\. In this window, .*: \d+, \d+ to \d+\.$/);
  await page.check("#table-switch");
  await page.locator("#table tbody tr").nth(4).waitFor();
  assert.match(await text(page, "#table caption"), /^Users of CH in each window, rounded to the noise/);
  // In its middle.
  await page.locator("#counted-chart").click();
  await page.locator("#position", { hasText: "window 3 of 5" }).waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("arrows go from key to key, and the focus stays", async () => {
  const { page, end } = await look({ calm: true });
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  const [first, second] = await names(page);
  await page.locator("#counted-rows button[tabindex='0']").focus();
  assert.equal(await focused(), first);
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), second);
  await page.keyboard.press("Enter");
  await until("the key", async () => (await text(page, "#counted-place")) === `users of ${second}`);
  assert.equal(await focused(), second);
  assert.equal(await page.locator("#counted-rows button[tabindex='0']").count(), 1);
  await page.keyboard.press("ArrowLeft");
  await page.locator("#position", { hasText: "window 4 of 5" }).waitFor();
  assert.equal(await focused(), second);
  const table = page.getByRole("table").first();
  assert.match(await table.locator("caption").textContent(), /^Users by key\. Largest users: /);
  assert.equal(await table.getByRole("rowheader").count(), 10);
  await end();
});

test("keys are text, whatever they hold", async () => {
  const { page, problems, end } = await look();
  await page.locator("#counted-find").fill("bold");
  await until("the key that was looked for", async () => (await names(page)).join() === "<b>bold</b>");
  assert.equal(await page.locator("main b").count(), 0);
  await page.locator("#counted-find").fill("x");
  await until("the key that was looked for", async () => (await names(page)).join() === "x\\u{202e}y");
  await page.locator("#counted-find").fill("nothing");
  await page.getByText("No key has this in its name.").waitFor();
  const csv = (await saved(page, "#save-csv")).content.toString();
  assert.match(csv, /^key,users,users_lower,users_upper,records,/);
  assert.match(csv, /\r\n'=1\+1,/, "never a formula");
  assert.equal(csv.trim().split("\r\n").length, 15);
  const png = await saved(page, "#save-png");
  assert.equal(png.content.subarray(1, 4).toString(), "PNG");
  assert.ok(png.content.length > 10_000);
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  const about = await text(page, "#about");
  assert.match(about, /All records of one user \(user_id\) in 1d\./);
  assert.match(about, /14 keys, each with 3 published numbers with its own noise/);
  assert.doesNotMatch(about, /undefined|NaN|plausible curves/);
  assert.deepEqual(problems, []);
  await end();
});

test("one row where no key is declared", async () => {
  const { page, problems, end } = await look({}, (one) => ({
    ...one, basis: { keys: { ...one.basis.keys, keys: [""] } }, values: [0, 14, 28].map((i) => one.values[i]),
  }));
  assert.deepEqual(await names(page), ["(all)"]);
  assert.match(await text(page, "#sentence"), /^\(all\), users: \d+, \d+ to \d+; window/);
  assert.deepEqual(problems, []);
  await end();
});

test("quantiles stand in the unit of their column, with their intervals", async () => {
  const golden = new URL("../../clients/golden/quantiles-laplace.json", import.meta.url);
  const { synopsis, keys } = JSON.parse(readFileSync(golden));
  const { page, problems, end } = await look({}, (one) => one, [synopsis]);
  await page.selectOption("#counted-by", "p50");
  await until("the median", async () => /^median of fare/i.test(await text(page, "#counted-number")));
  const median = keys.readings.indexOf("p50");
  const stated = keys.rows.map(({ estimates }) => estimates[median]);
  const known = stated.filter(({ interval }) => interval !== null).sort((a, b) => b.value - a.value);
  const told = (await words(page, ".number")).filter((one) => one !== "unknown");
  assert.equal(told.length, known.length);
  const half = (known[0].interval[1] - known[0].interval[0]) / 2;
  assert.ok(Math.abs(Number(told[0].replace("\u2212", "-")) - known[0].value) <= half / 10 + 1, `${told[0]}, not ${known[0].value}`);
  assert.doesNotMatch(await text(page, "#counted-rows"), /NaN|undefined|null/);
  await shoot(page, "quantiles-by-key");
  assert.deepEqual(problems, []);
  await end();
});

test("what the cap drops stands under the table where it is told", async () => {
  const { synopsis, keys: { caps } } = JSON.parse(readFileSync(new URL("../../clients/golden/counts-caps.json", import.meta.url)));
  const { page, problems, end } = await look({}, (one) => one, [synopsis]);
  const said = await text(page, "#counted-dropped");
  const found = /^The cap of 2 keys drops about ([\d.]+)\u00a0% of what users have \(([\d.]+) to ([\d.]+)\u00a0%\)\.$/.exec(said);
  assert.ok(found, said);
  const { value, interval: [lower, upper] } = caps.dropped;
  [value, lower, upper].forEach((share, i) => assert.ok(Math.abs(Number(found[i + 1]) - 100 * share) <= 0.5, `${said} ${share}`));
  assert.match(await text(page, "#counted-caps"), /no interval tells how much that is of one key\./);
  assert.ok(await page.locator("#counted-dropped").isVisible());
  await shoot(page, "counts-caps");
  assert.deepEqual(problems, []);
  await end();
  // Noise that may be all there is.
  const { basis: { keys } } = synopsis;
  const hidden = { ...synopsis, basis: { keys: { ...keys, units: { ...keys.units, unit: 1e4 * keys.units.unit } } } };
  const noisy = await look({}, (one) => one, [hidden]);
  assert.equal(await text(noisy.page, "#counted-dropped"), "How much the cap of 2 keys drops is unknown: the noise of this window hides it.");
  assert.deepEqual(noisy.problems, []);
  await noisy.end();
  const none = await look();
  assert.ok(await none.page.locator("#counted-dropped").isHidden());
  assert.match(await text(none.page, "#counted-caps"), /no interval tells how much that is\./);
  await none.end();
});

/** A golden synopsis of keys of two columns, and its sums. */
const columns = () => JSON.parse(readFileSync(new URL("../../clients/golden/counts-columns.json", import.meta.url)));

test("keys of several columns are added up by one of them, and users are not", async () => {
  const { synopsis, keys } = columns();
  const window = { start: "2013-06-17T05:00:00Z", end: synopsis.window.start };
  const earlier = { ...synopsis, window, published: "2013-06-18T06:01:00Z", ledger: { ...synopsis.ledger, sequence: 16 } };
  const { page, problems, end } = await look({}, (one) => one, [earlier, synopsis]);
  const options = (id) => page.locator(`#${id} option`).allTextContents();
  assert.deepEqual(await options("counted-part"), ["every key", "carrier", "sold by"]);
  assert.match(await text(page, "#counted-caps"), /By one of the columns there are \w+, sum of \w+ and mean of \w+ of all its keys together\. Users do not add up: a user may be in several keys\.$/);
  assert.ok((await options("counted-by")).includes("users"));
  await page.selectOption("#counted-part", "carrier");
  await until("the sums", async () => (await names(page)).length === 3);
  assert.equal((await options("counted-by")).length, 3);
  assert.equal(await text(page, "#counted-head"), "carrier");
  assert.match(await text(page, "#counted-caps"), /Here all keys with the same carrier are added up, and each interval is that of the sum\. Users do not/);
  await page.selectOption("#counted-by", "records");
  const { rows, readings } = keys.margins.find((margin) => margin.columns.join() === "carrier");
  const stated = rows.map(({ parts, estimates }) => ({ name: parts[0], ...estimates[readings.indexOf("records")] }));
  stated.sort((a, b) => b.value - a.value);
  await until("records", async () => (await names(page))[0] === stated[0].name);
  assert.deepEqual(await names(page), stated.map(({ name }) => name));
  for (const [i, told] of (await words(page, ".ends")).entries()) {
    const found = told.split(" to ").map((end) => Number(end.replaceAll(",", "")));
    const { interval } = stated[i];
    found.forEach((end, at) => assert.ok(Math.abs(end - interval[at]) <= (interval[1] - interval[0]) / 20 + 1, `${told}, not ${interval}`));
  }
  await page.getByRole("button", { name: stated[1].name, exact: true }).click();
  await until("the sum over time", async () => (await text(page, "#counted-place")).endsWith(` of ${stated[1].name}`));
  assert.match(await page.locator("#counted-chart").getAttribute("aria-label"), /in 2 windows, each with its interval/);
  await until("the address", () => /by=records.*part=carrier/.test(page.url()));
  await shoot(page, "counts-by-column");
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await shown(page);
  assert.equal((await names(page)).length, 3);
  assert.equal(await page.locator("#counted-part").inputValue(), "carrier");
  // What is saved is what was published.
  assert.equal((await saved(page, "#save-csv")).content.toString().trim().split("\r\n").length, 7);
  await page.selectOption("#counted-part", "");
  await until("every key", async () => (await names(page)).length === 6);
  assert.deepEqual(problems, []);
  await end();
  const one = await look();
  assert.ok(await one.page.locator("#counted-part").isHidden());
  assert.doesNotMatch(await text(one.page, "#counted-caps"), /add up/);
  await one.end();
});

test("where nothing adds up there is no choice, and the page says why", async () => {
  const { synopsis } = columns();
  const { keys: basis } = synopsis.basis;
  const users = basis.columns.filter(({ statistic }) => statistic === "users");
  const { value, ...counts } = synopsis.target.counts;
  const target = { counts: { ...counts, max_records: undefined, parts: [{ of: "users", part: 1 }] } };
  const of = { ...synopsis, target, basis: { keys: { ...basis, columns: users } }, values: synopsis.values.slice(0, basis.keys.length) };
  const { page, problems, end } = await look({}, (one) => one, [of]);
  assert.ok(await page.locator("#counted-part").isHidden());
  assert.match(await text(page, "#counted-caps"), /Users do not add up: a user may be in several keys\.$/);
  assert.deepEqual(problems, []);
  await end();
});

test("a table that is not proper is named, and the rest is shown", async () => {
  const { page, server, synopses, end } = await look();
  const last = synopses.at(-1);
  server.publish({ ...last, values: last.values.slice(1), ledger: { ...last.ledger, sequence: 900 } });
  await page.locator("#unreadable").waitFor();
  assert.match(await text(page, "#unreadable"), /values, its description asks for/);
  await end();
});

test("counts hang on the wall as bars, and fit a small screen, light and dark", async () => {
  const wall = await look({ fragment: "#view=wall", width: 1400, height: 900 });
  await wall.page.locator(".tile").waitFor();
  await settled(wall.page);
  assert.match(await text(wall.page, ".wall-what"), /of each country: here users, each \u00b1\u00a012$/);
  assert.match(await wall.page.locator(".tile canvas").getAttribute("aria-label"), /Largest users: /);
  await shoot(wall.page, "counts-wall", false);
  await wall.page.locator(".tile").click();
  await shown(wall.page);
  assert.deepEqual(wall.problems, []);
  await wall.end();
  for (const dark of [false, true]) {
    const { page, end } = await look({ width: 360, height: 740, dark });
    const [wide, all] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= all, `${wide} pixels`);
    await shoot(page, `counts-narrow${dark ? "-dark" : ""}`);
    await end();
  }
  const dark = await look({ dark: true });
  await shoot(dark.page, "counts-dark");
  await dark.end();
});
