// Names for people are what a page says of columns; programs still get the columns.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, saved, settled, shoot, shown } from "./support/browser.js";
import { given, serve } from "./support/server.js";
import { late } from "./support/tables.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const NAMES = {
  title: "Departure delay", description: "How late flights leave the airports of New York.", record: "flight",
  axes: [{ label: "departure delay", unit: "minute" }],
};

async function look(synopses, options) {
  const server = await serve(synopses, { now: () => new Date(Date.parse(synopses.at(-1).published) + 1000) });
  const { page, problems, context } = await open(browser, server.address, options);
  await shown(page);
  return { page, problems, server, end: async () => { await context.close(); await server.stop(); } };
}
const text = (page, selector) => page.locator(selector).textContent();

test("a curve has its title, its unit and its records by their names, and a file its column", async () => {
  const { page, problems, end } = await look(given("curve").map((one) => ({ ...one, names: NAMES })));
  assert.equal(await text(page, "#title"), "Departure delay");
  assert.equal(await text(page, "#description"), NAMES.description);
  assert.match(await text(page, ".reading"), /^flights per minute of departure delay: /);
  assert.match(await text(page, "#sentence"), /largest near departure delay = /);
  await page.getByLabel("Read at departure delay").fill("30");
  await page.getByRole("button", { name: "select a range" }).click();
  await settled(page);
  assert.equal(await text(page, "#range-head"), "Flights in a range");
  assert.deepEqual(await page.locator("#range-found dt").allTextContents(), ["Flights", "Share of all flights"]);
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  assert.match(await text(page, "#about"), /Flights per minute of departure delay; divide by/);
  await page.locator("#about-close").click();
  await shoot(page, "names");
  const { content } = await saved(page, "#save-csv");
  assert.ok(Object.keys(rows(content)[0]).includes("dep_delay"));
  assert.deepEqual(JSON.parse((await saved(page, "#save-json")).content).names, NAMES);
  await page.evaluate(() => { location.hash = "#view=wall"; });
  await page.locator(".wall-what", { hasText: "Departure delay" }).first().waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("names that change are no change of the records", async () => {
  const series = given("curve").filter(({ key }) => key === "EWR").slice(0, 3);
  const { page, end } = await look(series.map((one, i) => (i === 2 ? { ...one, names: NAMES } : one)));
  await page.getByText("window 3 of 3").waitFor();
  assert.doesNotMatch(await text(page, "#sentence"), /is not compared/);
  await end();
});

test("a map, moments and tables have names too, and without units they are as ever", async () => {
  const axes = [{ label: "delay", unit: "minute" }, { label: "time of day", unit: "hour" }];
  const map = await look(given("plane").map((one) => ({ ...one, names: { record: "entry", axes } })));
  assert.equal(await text(map.page, "#title"), "Distribution of entries over delay and time of day");
  assert.match(await text(map.page, ".reading"), /^entries per minute and hour of delay and time of day: /);
  await map.end();
  const moments = await look(given("summary").map((one) => ({ ...one, names: { record: "flight", axes } })));
  await moments.page.getByRole("button", { name: "Mean delay" }).waitFor();
  await moments.page.getByRole("button", { name: "Number of flights" }).waitFor();
  assert.equal(await moments.page.locator("#question").inputValue(), "dep_delay");
  await moments.end();
  const tables = await look(late().map((one) => ({ ...one, names: { title: "Late", record: "flight" } })));
  assert.match(await text(tables.page, "#title"), /^Late: probability of arr_delay > 15/);
  assert.equal(await text(tables.page, "#range-head"), "Flights in a range");
  assert.match(await text(tables.page, ".reading"), /probability/);
  assert.deepEqual(tables.problems, []);
  await tables.end();
});

test("names that mean harm, or are none, do none", async () => {
  const harm = "<img src=x onerror=document.title='taken'>";
  const harmful = await look(given("curve").map((one) => ({ ...one, names: { title: harm, description: harm, record: harm, axes: [{ label: harm, unit: harm }] } })));
  assert.equal(await harmful.page.locator("main img").count(), 0);
  assert.equal(await text(harmful.page, "#description"), harm);
  assert.deepEqual(harmful.problems, []);
  await harmful.end();
  const none = await look(given("curve").map((one) => ({ ...one, names: { title: 7, record: ["x"], axes: "none" } })));
  assert.equal(await text(none.page, "#title"), "Distribution of records over dep_delay");
  assert.equal(await text(none.page, "#description"), "");
  assert.deepEqual(none.problems, []);
  await none.end();
});

test("releases are chosen by their titles, and by their names where two have the same", async () => {
  const one = given("curve").filter(({ key }) => key === "EWR");
  const all = [["a", "Delays"], ["b", "Delays"], ["c", "Distances"], ["d", undefined]].flatMap(([release, title]) => one.map((own) => ({ ...own, release, names: { title } })));
  const server = await serve(all, { now: () => new Date(Date.parse(all.at(-1).published) + 1000) });
  const { page, problems, context } = await open(browser, server.address);
  await shown(page);
  assert.deepEqual(await page.locator("#release option").allTextContents(), ["a", "b", "Distances", "d"]);
  await page.locator("#release").selectOption("Distances");
  await shown(page, (release) => release === "c");
  assert.deepEqual(problems, []);
  await context.close();
  await server.stop();
});
