// Tables of cells: one price, many functions. What the page says of them is what the client reads from them.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { parse } from "../../clients/javascript/bernstream.js";
import { launch, open, rows, saved, settled, shoot, shown } from "./support/browser.js";
import { given, serve } from "./support/server.js";
import { arrivals, late, origins } from "./support/tables.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** Opens the page on synopses, and counts what it asks the server for after it has drawn them. */
async function look(synopses, options) {
  const last = synopses.at(-1);
  const server = await serve(synopses, { now: () => new Date(Date.parse(last.published) + 1000) });
  const { page, problems, context } = await open(browser, server.address, options);
  await shown(page);
  const asked = [];
  // A browser fetches the icon again where the address changes; where the budget went is asked when one comes to see it.
  page.on("request", (request) => /\/(icon\.svg|spending)$/.test(request.url()) || asked.push(request.url()));
  return { page, problems, asked, synopsis: parse(last), end: async () => { await context.close(); await server.stop(); } };
}

const text = (page, selector) => page.locator(selector).textContent();
/** The text beside a name in a list of what was found. */
const found = (page, name) => page.locator(".found div", { has: page.locator("dt", { hasText: new RegExp(`^${name}$`) }) }).locator("dd").textContent();
const numbers = (words) => words.replaceAll("\u2212", "-").match(/-?\d+(\.\d+)?/g).map(Number);

/** The fields of a range, and how a number is typed there. */
const ends = (page, column) => ["From", "To"].map((name) => page.getByLabel(`${name} ${column}, in numbers`));
async function type(field, x) {
  await field.fill(String(x));
  await field.press("Enter");
  await settled(field.page());
}

const GOLDEN = readdirSync(new URL("../../clients/golden", import.meta.url)).filter((name) => name.startsWith("cells-")).map((name) => name.replace(".json", ""));

test("what the noise hides is unknown: every place, and every quantile", async () => {
  const [first] = arrivals();
  const drowned = { ...first, noise: { ...first.noise, scale: 2000 }, band: { ...first.band, half_width: 9000, pointwise: 6000 } };
  const { page, problems, end } = await look([drowned]);
  assert.match(await text(page, "#sentence"), /It is unknown, as there may be no records, for dep_delay \u221230 to 180/);
  for (const name of ["Median", "10\u00a0% below", "90\u00a0% below", "Share of all records", "Mean arr_delay"]) assert.equal(await found(page, name), "unknown", name);
  assert.match(await found(page, "Records"), /\u00b1/);
  assert.deepEqual(problems, []);
  await end();
});

for (const name of GOLDEN) {
  test(`the numbers of ${name} are those of the client`, async () => {
    const { page, problems, synopsis, end } = await look(given(name));
    await isFunction(page, synopsis, {});
    await page.locator("#about-open").click();
    await page.locator("#about[open]").waitFor();
    assert.match(await text(page, "#about"), /Every function, count and quantile on this page is read from them/);
    assert.deepEqual(problems, []);
    await end();
  });
}

/** The rows that the page saves are the function at these options, and what is unknown is empty. */
async function isFunction(page, synopsis, choice) {
  const { content } = await saved(page, "#save-csv");
  const [head, ...lines] = content.toString().trim().split("\r\n");
  const table = rows(content);
  const { domain } = synopsis.meta;
  const points = table.map((row) => domain.map(({ column }) => row[column]));
  let unknown = 0;
  lines.forEach((line, i) => {
    const { values, pointwise, simultaneous } = synopsis.tables().on(points[i].map((x) => [x]), choice);
    const size = Math.max(...table.map(({ value }) => Math.abs(value)));
    const names = head.split(",");
    const cell = (name) => line.split(",")[names.indexOf(name)];
    assert.ok(Math.abs(Number(cell("value")) - values[0]) <= 1e-9 * size, `${points[i]}: ${line}`);
    const ends = { lower: simultaneous.lower[0], upper: simultaneous.upper[0], pointwise_lower: pointwise.lower[0], pointwise_upper: pointwise.upper[0] };
    for (const [name, end] of Object.entries(ends)) {
      if (Number.isNaN(end)) assert.equal(cell(name), "", line);
      else assert.ok(Math.abs(Number(cell(name)) - end) <= 1e-9 * size, `${name} at ${points[i]}: ${line}`);
    }
    unknown += Number.isNaN(ends.lower);
  });
  return { rows: lines.length, unknown };
}

test("an expected label is drawn with its band, and where there may be no records it is unknown", async () => {
  const { page, problems, synopsis, end } = await look(arrivals());
  assert.equal(await text(page, "#title"), "arr_delay by dep_delay");
  const { rows: all, unknown } = await isFunction(page, synopsis, { function: "expected" });
  assert.ok(all === 201 && unknown > 20 && unknown < 100, `${unknown} of ${all}`);
  assert.ok(await page.locator("#legend li", { hasText: "unknown: there may be no records" }).isVisible());
  await page.getByLabel("Read at dep_delay").fill("175");
  await settled(page);
  assert.match(await text(page, ".reading"), /expected arr_delay: unknown \(pointwise unknown\)/);
  assert.match(await text(page, "#sentence"), /unknown at dep_delay = 180\. It is unknown, as there may be no records, for dep_delay \u221230 to /);
  await page.check("#table-switch");
  await settled(page);
  assert.ok((await text(page, "#table tbody tr:last-child")).includes("unknown"));
  await page.getByLabel("Read at dep_delay").fill("10");
  await settled(page);
  const [value, half] = numbers((await text(page, ".reading")).split(":")[1]);
  const { value: own, simultaneous } = synopsis.tables().expected(10);
  const further = Math.max(own - simultaneous[0], simultaneous[1] - own);
  assert.ok(Math.abs(value - own) <= further / 10 && Math.abs(half - further) <= further / 10, `${value} ± ${half}, not ${own} ± ${further}`);
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  assert.match(await text(page, "#about"), /Counts of records on a grid of 70 steps, in 2 tables by their label/);
  assert.deepEqual(problems, []);
  await end();
});

test("a bandwidth is in the units of its column, and another is drawn here, without a question to the server", async () => {
  const { page, problems, asked, synopsis, end } = await look(arrivals());
  const slider = page.getByLabel("Bandwidth on dep_delay");
  assert.equal(await slider.getAttribute("aria-valuetext"), "3, the finest");
  assert.match(await text(page, "#smoothing"), /it costs no privacy/);
  const picture = () => page.locator("canvas.plot").evaluate((canvas) => canvas.toDataURL());
  const before = await picture();
  for (let i = 0; i < 25; i++) await slider.press("ArrowRight");
  await settled(page);
  const told = Number(await slider.getAttribute("aria-valuetext"));
  assert.ok(told > 6 && told < 52.5, `${told}`);
  assert.notEqual(await picture(), before);
  const { unknown } = await isFunction(page, synopsis, { function: "expected", bandwidths: told });
  assert.ok(unknown > 0);
  await slider.press("End");
  await settled(page);
  assert.equal(await slider.getAttribute("aria-valuetext"), "52.5", "a quarter of the domain");
  await isFunction(page, synopsis, { function: "expected", bandwidths: 52.5 });
  // It holds for another window, too.
  await page.keyboard.press("Tab");
  await page.locator("#back").click();
  await settled(page);
  assert.equal(await slider.getAttribute("aria-valuetext"), "52.5");
  assert.deepEqual(asked.filter((address) => !address.startsWith("blob:")), []);
  assert.deepEqual(problems, []);
  await end();
});

test("a range counts its records, their share and their mean label", async () => {
  const { page, problems, synopsis, end } = await look(arrivals());
  const [from, to] = ends(page, "dep_delay");
  await type(from, 15);
  await type(to, 90);
  const at = synopsis.tables();
  const isSaid = async (name, { value, pointwise }, unit = 1, isSymmetric = false) => {
    const said = numbers(await found(page, name));
    const half = (unit * (pointwise[1] - pointwise[0])) / 2;
    const wanted = isSymmetric ? [value, half] : [value, ...pointwise].map((x) => unit * x);
    assert.equal(said.length, wanted.length, `${name}: ${said}`);
    wanted.forEach((x, i) => assert.ok(Math.abs(said[i] - x) <= half / 10, `${name}: ${said}, not ${wanted}`));
  };
  await isSaid("Records", at.count([15, 90]), 1, true);
  await isSaid("Share of all records", at.share([15, 90]), 100);
  await isSaid("Mean arr_delay", at.mean([15, 90]));
  // One end pushes the other.
  await type(from, 150);
  assert.equal(await to.inputValue(), "150");
  assert.equal(await found(page, "Mean arr_delay"), "unknown");
  // A handle stands at round numbers.
  const handle = page.getByLabel("From dep_delay", { exact: true });
  await handle.focus();
  for (let i = 0; i < 3; i++) await handle.press("ArrowLeft");
  await settled(page);
  const moved = Number(await from.inputValue());
  assert.ok(moved < 150 && moved > 130 && moved % 2 === 0, `${moved}`);
  assert.match(await text(page, "#range"), /Any number of ranges costs no further privacy/);
  assert.deepEqual(problems, []);
  await end();
});

test("quantiles have intervals, for the window that is shown and for those before it", async () => {
  const { page, problems, synopsis, end } = await look(arrivals());
  const isSaid = async (name, { value, pointwise }) => {
    const said = numbers(await found(page, name));
    [value, ...pointwise].forEach((x, i) => assert.ok(Math.abs(said[i] - x) <= 0.06, `${name}: ${said}, not ${value}, ${pointwise}`));
  };
  const at = synopsis.tables();
  await isSaid("Median", at.quantile(0.5));
  await isSaid("90\u00a0% below", at.quantile(0.9));
  await isSaid("10\u00a0% below", at.quantile(0.1));
  const chart = page.locator("#quantiles-chart");
  const before = await chart.evaluate((canvas) => canvas.toDataURL());
  assert.match(await chart.getAttribute("aria-label"), /Quantiles of dep_delay in 6 windows, each with its interval/);
  await page.getByLabel("Two more quantiles").selectOption({ label: "25\u00a0% and 75\u00a0%" });
  await settled(page);
  await isSaid("75\u00a0% below", at.quantile(0.75));
  assert.notEqual(await chart.evaluate((canvas) => canvas.toDataURL()), before);
  const now = await found(page, "Median");
  await page.keyboard.press("Escape");
  await page.locator("#back").click();
  await settled(page);
  assert.notEqual(await found(page, "Median"), now);
  assert.deepEqual(problems, []);
  await shoot(page, "tables");
  await end();
});

test("a labelled synopsis shows the label's function or the density, and every class its probability", async () => {
  const { page, problems, synopsis, end } = await look(origins());
  const choose = async (label) => {
    await page.getByLabel("Function").selectOption({ label });
    await settled(page);
  };
  assert.equal(await text(page, "#title"), "Probability of origin = EWR, by dep_delay");
  await isFunction(page, synopsis, { function: "probability", table: 0 });
  const says = async (x) => {
    await page.getByLabel("Read at dep_delay").fill(String(x));
    await settled(page);
    return text(page, ".reading");
  };
  assert.match(await says(-20), /\u00b7 most probable: EWR/);
  assert.match(await says(75), /\u00b7 most probable: JFK/);
  assert.match(await says(160), /\u00b7 the most probable is too close to call/);
  await choose("probability of origin = JFK");
  await isFunction(page, synopsis, { function: "probability", table: 1 });
  await choose("distribution of records");
  assert.equal(await text(page, "#title"), "Distribution of records over dep_delay");
  const { unknown } = await isFunction(page, synopsis, { function: "density" });
  assert.equal(unknown, 0);
  const [from, to] = ends(page, "dep_delay");
  await type(to, 10);
  await type(from, -30);
  assert.equal(await found(page, "Most frequent"), "EWR");
  const [share] = numbers(await found(page, "origin = EWR"));
  assert.ok(Math.abs(share - 100 * synopsis.tables().proportions([-30, 10])[0].value) < 0.1, `${share}`);
  assert.deepEqual(problems, []);
  await end();
});

test("a map of two axes is hatched where nothing is known, and a range is on either axis", async () => {
  const { page, problems, synopsis, end } = await look(late());
  assert.ok(await page.locator("#legend li", { hasText: "unknown, or more noise than the colours allow for" }).isVisible());
  const { rows: all } = await isFunction(page, synopsis, { function: "probability", table: 1 });
  assert.equal(all, 41 * 41);
  assert.ok(await page.locator("#quantiles").isHidden(), "a quantile has one axis");
  const [, , , , unknown, close] = (await text(page, "#sentence")).match(/on (\d+) %.*on (\d+) %(, unknown on (\d+) %), too close to call within the noise on (\d+) %/);
  assert.ok(Number(unknown) > 5 && Number(close) > 0, `${unknown} ${close}`);
  await page.getByLabel("Axis of the range").selectOption({ label: "dep_delay" });
  const [from, end_] = ends(page, "dep_delay");
  await type(from, 30);
  const [count] = numbers(await found(page, "Records"));
  const to = Number(await end_.inputValue());
  const { value, pointwise } = synopsis.tables().count([null, [30, to]]);
  assert.ok(Math.abs(count - value) <= (pointwise[1] - value) / 10, `${count}, not ${value}`);
  const [part] = numbers(await found(page, "arr_delay > 15"));
  assert.ok(Math.abs(part - 100 * synopsis.tables().proportions([null, [30, to]])[1].value) < 0.1, `${part}`);
  await page.getByLabel("Bandwidth on hour").fill("30");
  await settled(page);
  await shoot(page, "tables-map");
  assert.deepEqual(problems, []);
  await end();
});
