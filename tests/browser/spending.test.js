// Where the budget went: at one glance, by release, day and block, in the past and as a forecast.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, settled, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const HOUR = 3_600_000;
const text = (at) => new Date(at).toISOString().replace(".000Z", "Z");
const START = Date.parse("2026-03-01T00:00:00Z");
const FOREVER = { start: "0001-01-01T00:00:00Z", end: "9999-12-31T23:59:59.999999Z" };

/**
 * Hourly windows of releases with `prices`, each charged to its block of `days` (0 for one for ever) until that is spent: then they
 * are withheld. `total` is that of a block; the last window is the `count`-th hour.
 */
function spent({ prices, count, total = 1, days = 1 }) {
  const [first] = given("curve").filter(({ key }) => key === "EWR");
  const millions = Object.entries(prices).map(([release, price]) => [release, Math.round(price * 1e6)]);
  const all = millions.reduce((sum, [, price]) => sum + price, 0);
  const found = [];
  let [block, gone] = [-1, 0];
  for (let i = 0; i < count; i++) {
    const now = days > 0 ? Math.floor(i / (24 * days)) : 0;
    if (now !== block) [block, gone] = [now, 0];
    if (gone + all > total * 1e6) continue;
    gone += all;
    const at = START + i * HOUR;
    const span = days > 0 ? { start: text(START + now * days * 24 * HOUR), end: text(START + (now + 1) * days * 24 * HOUR) } : FOREVER;
    for (const [release, price] of millions) {
      found.push({
        ...first, key: null, release, window: { start: text(at), end: text(at + HOUR) }, published: text(at + HOUR + 60_000), ledger: { ...first.ledger, sequence: i + 1 },
        privacy: {
          ...first.privacy, unit: { user: { column: "user_id", per: days > 0 ? `${days}d` : "ever", max_records_per_window: 20 } }, price: String(price / 1e6),
          blocks: [{ ...span, spent: String(gone / 1e6), total: String(total) }],
        },
      });
    }
  }
  return found;
}

async function look(synopses, options = {}) {
  const at = options.now ?? Date.parse(synopses.at(-1).published) + 1000;
  const server = await serve(synopses, { now: () => new Date(at) });
  const { page, problems, context } = await open(browser, server.address, options);
  await shown(page);
  await page.locator("#gauge").click();
  await page.locator("#spending:not([data-state=none])").waitFor();
  await settled(page);
  return { page, problems, server, end: async () => { await context.close(); await server.stop(); } };
}

const glance = (page) => page.locator("#spending-words").textContent();
const table = (page) => page.locator("#spending-table tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

const TWO = { "arrival-delay": 0.03, "departure-delay": 0.01 };
const TEN = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [i === 3 ? "a-release-with-a-name-that-is-rather-long-for-a-line" : `release-${i}`, (i + 1) / 1000]));

test("one glance says what is spent, until when it lasts and who spent it", async () => {
  // 0.04 of 1 an hour: 25 windows, so that a day of 24 is paid for.
  const { page, problems, end } = await look(spent({ prices: TWO, count: 24 * 9 + 12 }));
  assert.match(await glance(page), /^48\u00a0% of ε = 1 is spent\. At the price of the newest window the rest lasts to the end of the block\. The block ends on 11 Mar 2026, 00:00 UTC; the next one, if the pipeline goes on, has a budget of its own\. Most was spent by arrival-delay: 75\u00a0%\.$/);
  assert.match(await page.locator("#spending-block").textContent(), /ε = 0\.48 of ε = 1 spent, ε = 0\.52 left; forecast 96\u00a0%/);
  assert.deepEqual(await page.locator("#spending-releases .amount").allTextContents(), ["ε = 0.36: 36\u00a0% of the total; forecast 72\u00a0%", "ε = 0.12: 12\u00a0% of the total; forecast 24\u00a0%"]);
  assert.match(await page.locator("#spending-chart").getAttribute("aria-label"), /on 10 days up to 10 Mar, .* to come on 1 day\./);
  assert.deepEqual((await table(page))[1], ["arrival-delay", "228", "ε = 6.84", "1 Mar 2026, 00:00 UTC", "10 Mar 2026, 12:00 UTC"]);
  await page.getByLabel("Table by").selectOption("day");
  await settled(page);
  assert.deepEqual((await table(page)).slice(1, 3), [["2026-03-10", "departure-delay", "12", "ε = 0.12"], ["2026-03-10", "arrival-delay", "12", "ε = 0.36"]]);
  await page.getByLabel("Table by").selectOption("block");
  await settled(page);
  assert.deepEqual((await table(page))[1], ["10 Mar – 11 Mar 2026, 00:00 UTC", "ε = 0.48", "ε = 1", "ε = 0.52", "the end of the block", "arrival-delay: ε = 0.36; departure-delay: ε = 0.12"]);
  assert.deepEqual(problems, []);
  await end();
});

test("a budget that ends before its block says when, and one that is exhausted why and until when", async () => {
  const soon = await look(spent({ prices: { delay: 0.002 }, count: 24 * 12, days: 30 }));
  assert.match(await glance(soon.page), /^58\u00a0% of ε = 1 is spent\. At the price of the newest window the rest pays for 212 more windows, and lasts until 21 Mar 2026, 20:00 UTC\. The block ends on 31 Mar 2026, 00:00 UTC; the next one, if the pipeline goes on, has a budget of its own\. Everything was spent by delay\.$/);
  assert.match(await soon.page.locator("#spending-chart").getAttribute("aria-label"), /to come on 9 days/);
  await shoot(soon.page, "spending-soon");
  await soon.end();
  // 0.07 an hour: 14 windows, and 0.02 is left.
  const gone = await look(spent({ prices: { a: 0.05, b: 0.02 }, count: 24 * 3 + 20 }));
  assert.match(await glance(gone.page), /^The budget is exhausted: 98\u00a0% of ε = 1 is spent, and ε = 0\.02 that is left does not pay for a window at ε = 0\.07\. Windows from 4 Mar 2026, 14:00 UTC on are withheld\. The block ends on 5 Mar 2026, 00:00 UTC; the next one, if the pipeline goes on, has a budget of its own\. Most was spent by a: 71\u00a0%/);
  assert.deepEqual(gone.problems, []);
  await shoot(gone.page, "spending-exhausted");
  await gone.end();
  const never = await look(spent({ prices: { a: 0.07 }, count: 30, days: 0 }));
  assert.match(await glance(never.page), /Windows from 1 Mar 2026, 14:00 UTC on are withheld\. This budget never renews\./);
  assert.match(await never.page.locator("#spending-block").textContent(), /^Block, all of time: ε = 0\.98 of ε = 1 spent/);
  await never.end();
  // Spent to the last decimal: nothing waits for a time that does not come.
  const last = await look(spent({ prices: { a: 0.1 }, count: 12, days: 0 }));
  assert.equal(await last.page.locator("#gauge-words").textContent(), "budget spent, never renews");
  assert.match(await last.page.locator("#notice-words").textContent(), /^The privacy budget is spent and never renews: all further windows are withheld\./);
  await last.page.locator("#about-open").click();
  for (const place of ["body", "#about-body"]) assert.doesNotMatch(await last.page.locator(place).textContent(), /0001-01-01|1 Jan 1,|9999|forever:/);
  await last.end();
  const over = await look(spent({ prices: { a: 0.01 }, count: 24 }), { now: START + 30 * HOUR });
  assert.match(await glance(over.page), /^24\u00a0% of ε = 1 was spent in the last block, which ended on 2 Mar 2026, 00:00 UTC\./);
  await over.end();
});

test("windows that each have a budget use nothing up", async () => {
  const { page, problems, end } = await look(given("curve"));
  assert.match(await glance(page), /^Every window has a budget of its own, .*: what one spends, no other one lacks\. The newest one spent 100\u00a0% of it\. Everything was spent by departure-delay\.$/);
  assert.ok(await page.locator("#spending-days").isHidden(), "sums over blocks of a window say nothing");
  assert.deepEqual(problems, []);
  await shoot(page, "spending-own");
  await end();
});

test("what was spent by windows that are not kept is said, and new windows are told", async () => {
  const all = spent({ prices: TWO, count: 12 });
  const { page, server, end } = await look(all.slice(-8), { now: START + 13 * HOUR });
  assert.equal(await page.locator("#spending-releases li", { hasText: "windows that are not kept" }).locator(".amount").textContent(), "32\u00a0% of the total");
  for (const one of spent({ prices: TWO, count: 13 }).slice(-2)) server.publish(one);
  await until("the new window", async () => (await glance(page)).startsWith("52\u00a0%"), () => glance(page));
  await end();
});

test("a server that cannot tell is named, and so is one that has nothing", async () => {
  const synopses = spent({ prices: TWO, count: 3 });
  const server = await serve(synopses, { now: () => new Date(synopses.at(-1).published) });
  const { page, context } = await open(browser, "about:blank");
  await page.route("**/api/v1/spending", (route) => route.fulfill({ status: 503, body: "{}" }));
  await page.goto(server.address);
  await shown(page);
  await page.locator("#spending").scrollIntoViewIfNeeded();
  await page.getByText("Where the budget went cannot be shown: the server answers 503.").waitFor();
  await page.unroute("**/api/v1/spending");
  await page.route("**/api/v1/spending", (route) => route.fulfill({ json: { releases: [], days: [], blocks: [] } }));
  await page.reload();
  await shown(page);
  await page.locator("#spending").scrollIntoViewIfNeeded();
  await page.getByText("The windows that are kept say nothing of a budget.").waitFor();
  await shoot(page, "spending-none");
  await context.close();
  await server.stop();
});

test("nothing is asked before it is looked at, and seldom after", async () => {
  const synopses = spent({ prices: TWO, count: 30 });
  const server = await serve(synopses, { now: () => new Date(synopses.at(-1).published) });
  const { page, context } = await open(browser, "about:blank", { height: 500 });
  const asked = [];
  page.on("request", (request) => request.url().endsWith("/spending") && asked.push(request.url()));
  await page.goto(server.address);
  await shown(page);
  await settled(page);
  assert.equal(asked.length, 0);
  await page.locator("#gauge").click();
  await page.locator("#spending[data-state=lasts]").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "spending");
  for (const one of spent({ prices: TWO, count: 40 }).slice(-20)) server.publish(one);
  await settled(page);
  assert.equal(asked.length, 1);
  await context.close();
  await server.stop();
});

for (const [name, prices] of [["one", { "arrival-delay": 0.04 }], ["ten", TEN]]) {
  test(`it is whole in light and dark on every screen: ${name}`, async () => {
    for (const [width, height, dark] of [[360, 740, false], [1400, 900, false], [1400, 900, true], [3840, 2160, false]]) {
      const { page, problems, end } = await look(spent({ prices, count: 24 * 14 + 9, days: name === "one" ? 1 : 30, total: name === "one" ? 1 : 30 }), { width, height, dark });
      const fits = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth
        && [...document.querySelectorAll("#spending .track, #spending .amount, #spending-chart")].every((own) => own.getBoundingClientRect().right <= innerWidth && own.getBoundingClientRect().width > 60));
      assert.ok(fits, `${width}`);
      await page.locator("#spending").screenshot({ path: `${process.env.SHOTS ?? "shots"}/spending-${name}-${width}${dark ? "-dark" : ""}.png` });
      assert.deepEqual(problems, []);
      await end();
    }
  });
}
