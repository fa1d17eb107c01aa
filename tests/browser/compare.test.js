// Keys beside each other, values over time, ranges, and links that say what was looked at.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parse } from "../../clients/javascript/bernstream.js";
import { launch, open, settled, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

async function look(synopses, { fragment = "", ...options } = {}) {
  const server = await serve(synopses, { now: () => new Date(Date.parse(synopses.at(-1).published) + 1000) });
  const { page, problems, context } = await open(browser, `${server.address}${fragment}`, options);
  await shown(page);
  return { page, problems, server, end: async () => { await context.close(); await server.stop(); } };
}

const text = (page, selector) => page.locator(selector).textContent();
const numbers = (words) => words.replaceAll("\u2212", "-").match(/-?\d+(\.\d+)?/g).map(Number);
const found = (page, name) => page.locator(".found div", { has: page.locator("dt", { hasText: new RegExp(`^${name}$`) }) }).locator("dd").textContent();

/** Many keys, made of two: each later one has a little less. */
const manyKeys = (count) => Array.from({ length: count }, (_, i) => given("curve").filter(({ key }) => key === (i % 2 ? "JFK" : "EWR")).slice(-2).map((one) => ({
  ...one, key: `key ${String(i).padStart(3, "0")}`, values: one.values.map((v) => v * (1 - i / (2 * count))), ledger: { ...one.ledger, sequence: 1000 * i + one.ledger.sequence },
}))).flat();

test("a range that is dragged counts records, with the noise of their integral", async () => {
  const { page, problems, end } = await look(given("curve"));
  await page.getByRole("button", { name: "select a range" }).waitFor();
  const box = await page.locator("canvas.plot").boundingBox();
  await page.mouse.move(box.x + 0.3 * box.width, box.y + 90);
  await page.mouse.down();
  await page.mouse.move(box.x + 0.6 * box.width, box.y + 90, { steps: 6 });
  await page.mouse.up();
  await page.locator("#range-found").waitFor();
  const [from, to] = await Promise.all(["From", "To"].map((name) => page.getByLabel(`${name} dep_delay, in numbers`).inputValue().then(Number)));
  assert.ok(from > 20 && from < 45 && to > 85 && to < 110, `${from} to ${to}`);
  const synopsis = parse(given("curve").filter(({ key }) => key === "EWR").at(-1));
  const [count, half] = numbers(await found(page, "Records"));
  const at = (x) => synopsis.evaluate(x);
  const integral = (low, high) => Array.from({ length: 2000 }, (_, i) => at(low + ((i + 0.5) / 2000) * (high - low))).reduce((a, b) => a + b) * (high - low) / 2000;
  assert.ok(Math.abs(count - integral(from, to)) <= half / 10, `${count}, not ${integral(from, to)}`);
  const [share] = numbers(await found(page, "Share of all records"));
  assert.ok(Math.abs(share - (100 * integral(from, to)) / integral(-30, 180)) < 0.5, `${share}`);
  // Drawn noise moves the integral as far as is said: 95 of 100 times.
  let seed = 7;
  const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  const errors = synopsis.sample(600, random).map((one) => {
    let sum = 0;
    for (let i = 0; i < 60; i++) sum += one.evaluate(from + ((i + 0.5) / 60) * (to - from)) - at(from + ((i + 0.5) / 60) * (to - from));
    return Math.abs(sum * (to - from)) / 60;
  });
  const within = errors.filter((error) => error <= half).length / errors.length;
  assert.ok(within > 0.92 && within < 0.995, `${within} of the draws are within ${half}`);
  assert.match(await text(page, "#range"), /smoothed by a bandwidth of 10: the ends of the range are blurred/);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByRole("button", { name: "select a range" }).waitFor();
  assert.deepEqual(problems, []);
  await end();
});

test("a function that is no density has a mean over a range, and no count", async () => {
  const { page, end } = await look(given("flights-arrival"));
  await page.getByRole("button", { name: "select a range" }).click();
  await page.locator("#range-found").waitFor();
  assert.equal(await text(page, "#range-head"), "Mean over a range");
  assert.match(await found(page, "Mean over the range"), /±/);
  await end();
});

test("the value at the crosshair stands over time, and a click goes to its window", async () => {
  const { page, end, problems } = await look(given("curve"));
  const chart = page.locator("#overtime-chart");
  const label = () => chart.getAttribute("aria-label");
  const first = await label();
  assert.match(first, /records per unit of dep_delay at dep_delay = 75 in 10 windows/i);
  await page.getByLabel("Read at dep_delay").fill("0");
  await until("another value", async () => /dep_delay = 0 in/.test(await label()));
  const synopsis = parse(given("curve").filter(({ key }) => key === "EWR").at(-1));
  const [value] = numbers((await label()).split("In this window:")[1]);
  assert.ok(Math.abs(value - synopsis.evaluate(0)) < 0.01, `${value}`);
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  await page.mouse.click(box.x + 0.1 * box.width, box.y + 90);
  await shown(page, (release, key, start) => start === "2013-06-01T05:00:00Z");
  assert.match(page.url(), /until=2013-06-02T05%3A00%3A00Z/);
  await page.goBack();
  await shown(page, (release, key, start) => start === "2013-06-10T05:00:00Z");
  await page.getByRole("button", { name: "select a range" }).click();
  await page.getByLabel("Value over time").selectOption("range");
  await until("records", async () => /^Records at dep_delay/.test(await label()));
  assert.deepEqual(problems, []);
  await end();
});

test("where a window was withheld there is a gap in time", async () => {
  const series = given("curve").filter(({ key }) => key === "EWR");
  const ink = async (synopses) => {
    const { page, end } = await look(synopses);
    const columns = await page.locator("#overtime-chart").evaluate((canvas) => {
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const wanted = getComputedStyle(document.documentElement).getPropertyValue("--curve").trim().match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
      const has = (x) => {
        for (let y = 0; y < height; y++) if (wanted.every((c, i) => Math.abs(data[4 * (y * width + x) + i] - c) < 4)) return true;
        return false;
      };
      return Array.from({ length: width }, (_, x) => (has(x) ? 1 : 0)).join("").replace(/^0+|0+$/g, "");
    });
    await end();
    return columns;
  };
  assert.doesNotMatch(await ink(series), /0{10}/);
  assert.match(await ink(series.filter((_, i) => i !== 4)), /1{20}0{40,}1{20}/);
});

test("keys are side by side, sorted by the value at the crosshair, found by name, and opened", async () => {
  const { page, end, problems } = await look(manyKeys(20));
  const names = () => page.locator("#keys-list .name").allTextContents();
  assert.equal((await names()).length, 20);
  assert.match(await text(page, "#keys-hint"), /of 20 keys, about 1 may lie outside theirs/);
  await page.getByLabel("Read at dep_delay").fill("0");
  await page.getByLabel("Sort").selectOption("value");
  await settled(page);
  const values = (await page.locator("#keys-list .here").allTextContents()).map((words) => numbers(words)[0]);
  assert.deepEqual(values, [...values].sort((a, b) => b - a));
  await page.getByLabel("Find a key").fill("key 01");
  await settled(page);
  assert.equal((await names()).length, 10);
  // Of so few none is to be expected outside its band.
  assert.doesNotMatch(await text(page, "#keys-hint"), /outside/);
  // One stop of the tab key for all.
  assert.equal(await page.locator("#keys-list button[tabindex='0']").count(), 1);
  await page.locator("#keys-list button").first().focus();
  await page.keyboard.press("ArrowRight");
  const second = (await names())[1];
  assert.ok((await page.evaluate(() => document.activeElement.textContent)).startsWith(second));
  await page.keyboard.press("Enter");
  await shown(page, (release, key) => key === second);
  assert.deepEqual(problems, []);
  await end();
});

test("of 200 keys some are shown, and all on demand", async () => {
  const { page, end, problems } = await look(manyKeys(200));
  assert.equal(await page.locator("#keys-list li").count(), 36);
  await page.getByRole("button", { name: "Show all 200" }).click();
  await until("all", async () => await page.locator("#keys-list li").count() === 200);
  await shoot(page, "keys-200");
  assert.deepEqual(problems, []);
  await end();
});

test("up to four keys are laid over each other with their names, and no more", async () => {
  const { page, end, problems } = await look(manyKeys(6));
  const boxes = page.locator("#keys-list input[type='checkbox']:visible");
  assert.equal(await boxes.count(), 5);
  const pixels = (name) => page.locator("canvas.plot").evaluate((canvas, variable) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const wanted = getComputedStyle(document.documentElement).getPropertyValue(variable).trim().match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += wanted.every((c, j) => Math.abs(data[i + j] - c) < 4);
    return count;
  }, `--${name}`);
  assert.equal(await pixels("other-1"), 0);
  for (let i = 0; i < 3; i++) {
    await boxes.nth(i).check();
    await settled(page);
  }
  for (const name of ["other-1", "other-2", "other-3"]) assert.ok(await pixels(name) > 100, name);
  assert.deepEqual(await page.locator("#legend .other-key").allTextContents(), ["key 001", "key 002", "key 003"]);
  assert.ok(await boxes.nth(3).isDisabled());
  assert.equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).getAll("with").length, 3);
  await boxes.nth(1).uncheck();
  await settled(page);
  assert.equal(await page.locator("#legend .other-key").count(), 2);
  await page.goBack();
  await until("the step before", async () => await page.locator("#legend .other-key").count() === 3);
  assert.deepEqual(problems, []);
  await end();
});

test("two airports are laid over each other by a link", async () => {
  const { page, end, problems } = await look(given("curve"), { fragment: "#release=departure-delay&key=EWR&with=JFK&at=60" });
  await page.locator("#legend .other-key", { hasText: "JFK" }).waitFor();
  assert.match(await text(page, ".reading"), /records per unit of dep_delay/);
  await shoot(page, "overlay");
  assert.deepEqual(problems, []);
  await end();
});

test("a link is a view: window, crosshair, range, switches and keys", async () => {
  const { page, server, end, problems } = await look(given("curve"));
  await page.keyboard.press("ArrowLeft");
  await page.getByLabel("Read at dep_delay").fill("30");
  await page.check("#plausible");
  await page.uncheck("#ghost");
  await page.getByRole("button", { name: "select a range" }).click();
  await page.getByLabel("Lay JFK over the chosen key").check();
  await page.getByLabel("Value over time").selectOption("range");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Link copied").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const said = async (one) => [await shown(one), await text(one, ".reading"), await found(one, "Records"), await one.isChecked("#plausible"), await one.isChecked("#ghost"), await one.locator("#legend .other-key").allTextContents(), await one.locator("#overtime-chart").getAttribute("aria-label")];
  const mine = await said(page);
  const other = await open(browser, link);
  await shown(other.page, (release, key, start) => start === "2013-06-09T05:00:00Z");
  await settled(other.page);
  assert.deepEqual(await said(other.page), mine);
  assert.ok(link.startsWith(server.address));
  assert.deepEqual([...problems, ...other.problems], []);
  await other.context.close();
  await end();
});

test("back and forward go through keys, and what is not published is said", async () => {
  const { page, end } = await look(given("curve"), { fragment: "#release=departure-delay&key=EWR" });
  await page.locator("#key").selectOption({ label: "JFK" });
  await shown(page, (release, key) => key === "JFK");
  await page.goBack();
  await shown(page, (release, key) => key === "EWR");
  await page.goForward();
  await shown(page, (release, key) => key === "JFK");
  assert.ok(await page.locator("#missing").isHidden());
  await page.evaluate(() => { location.hash = "#release=departure-delay&key=LGA"; });
  await page.locator("#missing", { hasText: "Not published: key LGA" }).waitFor();
  assert.match(await text(page, "#missing"), /Until then this is departure-delay, key EWR/);
  await page.evaluate(() => { location.hash = "#release=departure-delay&key=JFK&until=2012-01-01T00:00:00Z"; });
  await page.locator("#missing", { hasText: "window until 1 Jan 2012" }).waitFor();
  await end();
});

test("arrows turn windows after a checkbox, and the way to the plot is short", async () => {
  const { page, end } = await look(given("curve"));
  await page.locator("#plausible").focus();
  await page.keyboard.press(" ");
  assert.ok(await page.isChecked("#plausible"));
  await page.keyboard.press("ArrowLeft");
  await page.locator("#position", { hasText: "window 9 of 10" }).waitFor();
  await page.locator("#skip").focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  assert.equal(await page.locator("#sentence").getAttribute("aria-hidden"), "true");
  assert.equal(await page.getByLabel("Read at dep_delay").getAttribute("aria-valuetext"), "dep_delay 75");
  await end();
});

test("the scrubber stays where it is while windows turn", async () => {
  for (const width of [360, 800, 1400]) {
    const { page, end } = await look(given("curve"), { width, height: 900 });
    const places = new Set();
    // Ten windows: the first has no window before it to tell of.
    for (let i = 0; i < 10; i++) {
      places.add(await page.locator("#scrubber").evaluate((own) => Math.round(own.getBoundingClientRect().top + window.scrollY)));
      await page.keyboard.press("ArrowLeft");
      await settled(page);
    }
    assert.equal(places.size, 1, `${width}: ${[...places]}`);
    await end();
  }
});

/** What the drawer says of a synopsis with other privacy. */
async function told(change, more = {}) {
  const [first] = given("curve");
  const { page, end } = await look([{ ...first, ...more, privacy: { ...first.privacy, ...change } }]);
  await page.locator("#badge").click();
  const words = await text(page, "#about");
  await end();
  return words.replaceAll("\u00a0", " ");
}

test("the price is told in odds, and a record is not a person", async () => {
  const one = await told({});
  assert.match(one, /Someone who is 50 % sure that your record is included can become at most 73\.2 % sure, whatever else they know\./);
  assert.match(one, /A record is not a person\. A person with 10 records here is protected by at most 10 × ε = 10\./);
  assert.match(await told({ price: "0.5" }), /at most 62\.3 % sure.*With everything that may ever be charged to the same block \(ε = 1\): someone who is 50 % sure.*at most 73\.2 % sure/);
  assert.match(await told({ price: "12", blocks: [] }), /at most 99\.9994 % sure/);
  const delta = { epsilon: "1", delta: "0.000000001" };
  assert.match(await told({ definition: "epsilon-delta", price: delta, blocks: [] }), /A guess whether your record is included, right half of the time without these numbers, is right at most 73\.2 % of the time with them\..*10 × ε = 10, and by a δ that grows still faster/);
  assert.match(await told({ definition: "zero-concentrated", price: { rho: "0.02" }, blocks: [] }), /right at most 55\.1 % of the time with them\..*100 × ρ = 2\./);
  assert.match(await told({ adjacency: "replace_one" }), /50 % sure between two values of your record/);
  const user = await told({ unit: { user: { column: "id", per: "1d", max_records_per_window: 2 } } });
  assert.match(user, /that your records are included/);
  assert.doesNotMatch(user, /A record is not a person/);
  const random = { gamma: 0.1, records: 300, prior: [], samples: 285, order: 285, rho: 0.01, seed: 1, range: [0, 100], epsilon_at_worst: 14.2 };
  assert.doesNotMatch(await told({ definition: { random } }, { noise: { ...given("curve")[0].noise, calibrated: "sampled" } }), /50 % sure|half of the time/);
});
