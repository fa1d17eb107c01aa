// The wall: what hangs there is read from afar, and turns by itself.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const renumbered = (name, from) => given(name).map((one) => ({ ...one, ledger: { ...one.ledger, sequence: one.ledger.sequence + from } }));
const keyed = (count) => Array.from({ length: count }, (_, i) => given("curve").filter(({ key }) => key === "EWR").slice(-2).map((one) => ({
  ...one, key: `a key with a long name, number ${String(i).padStart(3, "0")}`, ledger: { ...one.ledger, sequence: 100 * i + one.ledger.sequence },
}))).flat();

async function hang(synopses, { fragment = "#view=wall", ahead = 1000, ...options } = {}) {
  const server = await serve(synopses, { now: () => new Date(Date.parse(synopses.at(-1).published) + ahead) });
  const { page, problems, context } = await open(browser, `${server.address}${fragment}`, options);
  await page.locator(".tile").first().waitFor();
  return { page, problems, server, context, end: async () => { await context.close(); await server.stop(); } };
}

const names = (page) => page.locator(".wall-name").allTextContents();

test("all releases and keys hang on the wall, of moments none, and the screen is full of them", async () => {
  const synopses = [...renumbered("summary", 5000), ...renumbered("plane", 3000), ...renumbered("flights-arrival", 4000), ...given("curve")];
  for (const [width, height] of [[360, 740], [1400, 900], [3840, 2160]]) {
    const { page, problems, end } = await hang(synopses, { width, height });
    if (width > 400) {
      await until("all tiles", async () => (await names(page)).length === 4, () => names(page));
      assert.deepEqual((await names(page)).sort(), ["EWR", "JFK", "arrival-delay", "delay-and-hour"]);
    }
    await page.waitForTimeout(1200);
    const [plots, isFitting, stretched] = await page.evaluate(() => {
      const boxes = [...document.querySelectorAll(".tile canvas")].map((canvas) => [canvas.getBoundingClientRect(), canvas]);
      const area = boxes.reduce((sum, [{ width: w, height: h }]) => sum + w * h, 0) / (innerWidth * innerHeight);
      const own = document.documentElement;
      return [area, own.scrollWidth <= innerWidth && own.scrollHeight <= innerHeight,
        boxes.filter(([box, canvas]) => Math.abs(canvas.height / canvas.width - box.height / box.width) > 0.02).length];
    });
    assert.ok(plots > 0.35, `plots are ${plots} of the screen of ${width} pixels`);
    assert.ok(isFitting, "nothing is to be scrolled");
    assert.equal(stretched, 0);
    await shoot(page, `wall-${width}`, false);
    assert.deepEqual(problems, []);
    await end();
  }
});

test("more than the screen holds turns by itself", async () => {
  const time = Date.now();
  const { page, context, problems, end } = await hang(keyed(20), { width: 1400, height: 900, time });
  await page.getByText("1 of 4").waitFor();
  const first = await names(page);
  assert.ok(first.length >= 4 && first.length < 20);
  await context.clock.setFixedTime(time + 13_000);
  await page.getByText("2 of 4").waitFor();
  assert.equal((await names(page)).filter((name) => first.includes(name)).length, 0);
  assert.deepEqual(problems, []);
  await end();
});

test("age, delay and simulation are said in large", async () => {
  const { page, server, end } = await hang(given("curve").map((one) => ({ ...one, synthetic: true })), { ahead: 3_600_000 });
  assert.deepEqual(await page.locator(".wall-age").allTextContents(), ["1 hour old", "1 hour old"]);
  const size = (selector) => page.locator(selector).first().evaluate((own) => parseFloat(getComputedStyle(own).fontSize));
  assert.ok(await size(".wall-name") >= 20);
  assert.ok(await page.getByText("Simulated data; no real people").isVisible());
  await server.stop();
  await page.locator("#wall-state", { hasText: "The connection to the server was lost" }).waitFor();
  await end().catch(() => {});
  const late = await hang(given("curve"), { ahead: 3 * 86_400_000 });
  assert.match((await late.page.locator(".wall-age").allTextContents()).join(), /Overdue since 12 Jun 2013/);
  await late.end();
});

test("a tile opens its key, the way back is the wall, and a link is one release", async () => {
  const { page, problems, end } = await hang([...renumbered("plane", 3000), ...given("curve")]);
  await page.locator(".tile", { hasText: "JFK" }).click();
  assert.deepEqual((await shown(page)).slice(0, 2), ["departure-delay", "JFK"]);
  assert.ok(await page.locator("#wall").isHidden());
  await page.goBack();
  await page.locator("#wall").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#all").waitFor();
  await page.getByRole("button", { name: "Wall view" }).click();
  await page.locator("#wall").waitFor();
  assert.match(page.url(), /#view=wall$/);
  await page.evaluate(() => { location.hash = "#view=wall&release=departure-delay"; });
  await until("one release", async () => (await names(page)).join() === "EWR,JFK");
  assert.deepEqual(problems, []);
  await end();
});
