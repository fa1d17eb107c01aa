// The states that people meet, each said in words.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, shoot, shown } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const EWR = () => given("curve").filter(({ key }) => key === "EWR");
const DAY = 86_400_000;
const at = (time) => ({ now: () => new Date(time) });
const pill = (page, words) => page.locator("#status-words", { hasText: words }).waitFor();
const notice = (page) => page.locator("#notice-words").textContent();

async function on(server, options) {
  const { page, problems, context } = await open(browser, server.address, options);
  return { page, problems, end: async () => { await context.close(); await server.stop(); } };
}

test("connecting, and then no window yet", async () => {
  const server = await serve([]);
  server.mute(true);
  const { page, end } = await on(server);
  await pill(page, /Connecting|No window yet/);
  server.mute(false);
  await page.reload();
  await pill(page, "No window yet");
  assert.match(await notice(page), /Connected to folder .* shown as soon as they are published/);
  assert.ok(await page.locator("#all").isHidden());
  await shoot(page, "state-no-window-yet");
  server.publish(EWR()[0]);
  await shown(page);
  await end();
});

test("a window is on the screen when it is published, and the page follows the newest", async () => {
  const [first, ...rest] = EWR();
  const server = await serve([first], at(Date.parse(rest[3].published) + 100));
  const { page, end } = await on(server);
  await shown(page);
  for (const synopsis of rest.slice(0, 3)) {
    server.publish(synopsis);
    await shown(page, (release, key, start) => start === synopsis.window.start);
  }
  // Who looks at an older window is not torn away from it, and is told of newer ones.
  await page.keyboard.press("Home");
  await shown(page, (release, key, start) => start === first.window.start);
  server.publish(rest[3]);
  await page.getByText("4 newer windows: go to the newest").waitFor();
  assert.equal((await shown(page))[2], first.window.start);
  await page.locator("#newest").click();
  await shown(page, (release, key, start) => start === rest[3].window.start);
  await end();
});

test("one and the same synopsis twice is one window", async () => {
  const series = EWR();
  const server = await serve([...series, ...series], at(Date.parse(series.at(-1).published)));
  const { page, end } = await on(server);
  await page.getByText("window 10 of 10").waitFor();
  await end();
});

test("live, and overdue since the next window was expected", async () => {
  const series = EWR();
  const last = Date.parse(series.at(-1).published);
  const fresh = await on(await serve(series, at(last + DAY / 2)));
  await shown(fresh.page);
  await pill(fresh.page, "Live");
  assert.ok(await fresh.page.locator("#notice").isHidden());
  await fresh.end();
  const late = await on(await serve(series, at(last + 3 * DAY)));
  await pill(late.page, "Overdue since 12 Jun 2013, 05:00 UTC");
  assert.match(await notice(late.page), /Overdue since 12 Jun 2013, 05:00 UTC: the next window was expected then, 2 days ago/);
  await shoot(late.page, "state-overdue");
  await late.end();
  // Data of another year is not late: it has ended.
  const old = await on(await serve(series, at(last + 4000 * DAY)));
  await pill(old.page, "Data through 11 Jun 2013, 05:00 UTC");
  assert.equal(await old.page.locator("#status").getAttribute("data-state"), "ended");
  assert.match(await notice(old.page), /If this release is meant to go on, its worker is down/);
  await old.end();
  // With a declared end it is complete, and nothing is amiss: not before the last window, and whatever was spent.
  const declared = series.map((one) => ({ ...one, grid_end: series.at(-1).window.end }));
  const complete = await on(await serve(declared, at(last + 4000 * DAY)));
  await pill(complete.page, "Complete through 11 Jun 2013, 05:00 UTC");
  assert.ok(await complete.page.locator("#notice").isHidden());
  await shoot(complete.page, "state-complete");
  await complete.end();
  const withheld = await on(await serve(declared.slice(0, -1), at(last + 3 * DAY)));
  await pill(withheld.page, "Overdue since");
  await withheld.end();
  const nearly = await on(await serve(series, at(last + 29 * DAY)));
  await pill(nearly.page, "Overdue since");
  await nearly.end();
});

test("a lost connection is said, and mends itself when the server is back", async () => {
  const series = EWR();
  const server = await serve(series.slice(0, 5), at(Date.parse(series[5].published)));
  const { page, end } = await on(server);
  await shown(page);
  await pill(page, "Live");
  await server.stop();
  await pill(page, "Connection lost");
  assert.match(await notice(page), /Retrying automatically\. The values shown remain valid/);
  await shoot(page, "state-connection-lost");
  await server.start();
  await pill(page, "Live");
  await server.publish(series[5]);
  await shown(page, (release, key, start) => start === series[5].window.start);
  await end();
});

test("a lost source is said with its reason", async () => {
  const server = await serve(EWR(), at(Date.parse(EWR().at(-1).published)));
  const { page, end } = await on(server);
  await shown(page);
  server.source(false, "no broker answers at localhost:9092");
  await pill(page, "Source lost");
  assert.match(await notice(page), /cannot read folder .*: no broker answers at localhost:9092/);
  server.source(true);
  await pill(page, "Live");
  await end();
});

test("what cannot be read is left out, told, and breaks nothing", async () => {
  const server = await serve(EWR(), at(Date.parse(EWR().at(-1).published)));
  const { page, problems, end } = await on(server);
  await shown(page);
  server.unreadable("partition 0, offset 12", "not a synopsis: <b>it has 3 values</b>");
  server.garbage("{\"format\": 2}");
  server.garbage("not json at all");
  await page.getByText("3 messages could not be read as a synopsis and are skipped.").click();
  assert.match(await page.locator("#unreadable-list").textContent(), /partition 0, offset 12: not a synopsis: <b>it has 3 values<\/b>/);
  assert.equal(await page.locator("#unreadable-list b").count(), 0);
  await shoot(page, "state-unreadable");
  assert.equal((await shown(page))[1], "EWR");
  assert.deepEqual(problems, []);
  await end();
});

/** Synopses of users and days: hourly windows that share a day's budget, of which `spent` is gone. */
function ofUsers(spent, price = "0.25") {
  const [first] = EWR();
  const day = { start: "2013-06-01T00:00:00Z", end: "2013-06-02T00:00:00Z", total: "1" };
  return {
    ...first, window: { start: "2013-06-01T11:00:00Z", end: "2013-06-01T12:00:00Z" }, published: "2013-06-01T12:05:00Z",
    privacy: { ...first.privacy, unit: { user: { column: "user_id", per: "1d", max_records_per_window: 20 } }, price, blocks: [{ ...day, spent }] },
  };
}

test("a spent budget is said, with its end, and is no fault", async () => {
  const spent = ofUsers("1.00");
  const { page, end } = await on(await serve([spent], at(Date.parse(spent.published) + 10 * 3_600_000)));
  await pill(page, "Budget spent");
  assert.match(await notice(page), /budget is spent until 2 Jun 2013, 00:00 UTC/);
  assert.match(await page.locator("#gauge-words").textContent(), /budget spent, until 2 Jun 2013/);
  assert.match(await page.locator("#gauge-bar").getAttribute("aria-valuetext"), /1\.00 of 1/);
  await shoot(page, "state-budget-spent");
  await end();
  // While something is left a synopsis cannot tell: prices fall, and a stale page names the budget as what may be the cause.
  const little = ofUsers("0.9");
  const stale = await on(await serve([little], at(Date.parse(little.published) + 10 * 3_600_000)));
  await pill(stale.page, "Overdue since");
  assert.match(await notice(stale.page), /withheld for its budget \(ε 0\.9 of 1 is spent in this block, until 2 Jun 2013, 00:00 UTC\)/);
  await stale.end();
  const enough = ofUsers("0.9", "0.1");
  const other = await on(await serve([enough], at(Date.parse(enough.published))));
  await pill(other.page, "Live");
  assert.match(await other.page.locator("#gauge-words").textContent(), /90 % spent, until 2 Jun 2013/);
  await other.end();
  // Single records have a budget a window: all of it is gone, and nothing is the matter.
  const records = EWR();
  const third = await on(await serve(records, at(Date.parse(records.at(-1).published))));
  await pill(third.page, "Live");
  assert.match(await third.page.locator("#gauge-words").textContent(), /^Renews with each window$/);
  assert.ok(await third.page.locator("#gauge-bar").isHidden(), "a gauge that is always full");
  await third.end();
});

test("a running sum is late by the cadence of its newest part", async () => {
  const series = given("rho").filter(({ key }) => key === "EWR");
  const last = Date.parse(series.at(-1).published);
  const { page, end } = await on(await serve(series, at(last + 2 * DAY)));
  await pill(page, "Overdue since 8 Jun 2013, 05:00 UTC");
  await end();
});

test("simulated, incomplete and random are loud", async () => {
  const [first] = EWR();
  const random = { gamma: 0.1, records: 300, prior: [{ column: "dep_delay", law: { uniform: { min: 0, max: 10 } } }], samples: 285, order: 285, rho: 0.01, seed: 1, range: [0, 100], epsilon_at_worst: 14.2 };
  const loud = {
    ...first, synthetic: true, incomplete: true, noise: { ...first.noise, calibrated: "sampled" },
    privacy: { ...first.privacy, definition: { random } },
  };
  const { page, problems, end } = await on(await serve([loud], at(Date.parse(first.published))));
  await shown(page);
  const flags = await page.locator(".flag:visible").allTextContents();
  assert.equal(flags.length, 3);
  assert.match(flags.join("\n"), /Simulated data; no real people\.[\s\S]*Incomplete[\s\S]*RANDOM differential privacy, γ = 0\.1/);
  assert.match(await page.locator("#badge").textContent(), /RANDOM differential privacy/);
  await shoot(page, "state-loud");
  await page.locator("#badge").click();
  assert.match(await page.locator("#about").textContent(), /windows of 300 records drawn from a declared prior/);
  const about = await page.locator("#about").textContent();
  assert.match(about, /For one record of one window and key it may fail, with a probability of up to γ = 0\.1\./);
  assert.match(about, /at most w × 0\.1 for w windows and keys together, to at most 300 × 0\.1 for all records of one at once/);
  assert.doesNotMatch(about, /at least 0\.9/);
  assert.deepEqual(problems, []);
  await end();
});

test("play goes through the windows and ends at the newest", async () => {
  const series = EWR().slice(0, 4);
  const { page, end } = await on(await serve(series, at(Date.parse(series.at(-1).published))));
  await shown(page);
  await page.locator("#play").click();
  for (const synopsis of series.slice(1)) await shown(page, (release, key, start) => start === synopsis.window.start);
  await page.getByRole("button", { name: "Play" }).waitFor();
  await end();
});


test("a changed configuration is not told as a change of the records", async () => {
  const [first, second] = EWR();
  const changed = { ...second, values: first.values.map((v) => 10 * v), target: { density: { ...second.target.density, kernel: { bandwidths: [20] } } } };
  const { page, end } = await on(await serve([first, changed], at(Date.parse(changed.published))));
  await shown(page);
  const sentence = await page.locator("#sentence").textContent();
  assert.match(sentence, /It is not compared with the previous window: their settings differ\./);
  assert.doesNotMatch(sentence + await page.locator(".reading").textContent(), /eyond the noise|· previous/);
  assert.ok(await page.getByText("differs by more than the noise").isHidden());
  await end();
});

test("two pipelines on one topic are chosen between, and never one series", async () => {
  const series = EWR().slice(0, 3);
  const other = series.map((one) => ({ ...one, pipeline: "second", ledger: { ...one.ledger, id: "00" } }));
  const server = await serve([...series, ...other.slice(0, 2)], at(Date.parse(series.at(-1).published)));
  const { page, end } = await on(server);
  await page.getByText("window 3 of 3").waitFor();
  await page.getByLabel("Pipeline").selectOption({ label: "second" });
  await page.getByText("window 2 of 2").waitFor();
  assert.match(page.url(), /#release=departure-delay&key=EWR&pipeline=second$/);
  await end();
  const alone = await on(await serve(series, at(Date.parse(series.at(-1).published))));
  await shown(alone.page);
  assert.ok(await alone.page.locator("#pipeline").isHidden());
  await alone.end();
});

test("what lies in the future is told, and does not stay the newest window for ever", async () => {
  const series = EWR();
  const now = Date.parse(series.at(-1).published);
  const server = await serve(series, at(now));
  const { page, end } = await on(server);
  await page.getByText("window 10 of 10").waitFor();
  const far = { start: "9990-01-01T00:00:00Z", end: "9990-01-02T00:00:00Z" };
  const beyond = new Date(now + 70_000).toISOString();
  server.publish({ ...series[0], window: far, ledger: { ...series[0].ledger, sequence: 501 } });
  server.publish({ ...series[0], published: beyond, ledger: { ...series[0].ledger, sequence: 502 } });
  await page.getByText("2 messages could not be read").click();
  assert.match(await page.locator("#unreadable-list").textContent(), /9990-01-02T00:00:00Z, which lies in the future/);
  assert.equal(await page.locator("#position").textContent(), "window 10 of 10");
  // Clocks may be a little apart.
  server.publish({ ...series[0], published: new Date(now + 50_000).toISOString(), ledger: { ...series[0].ledger, sequence: 503 } });
  await page.getByText("window 11 of 11").waitFor();
  await end();
});

test("of many unreadable messages the last are kept, cut short, and all are counted", async () => {
  const server = await serve(EWR(), at(Date.parse(EWR().at(-1).published)));
  const { page, end } = await on(server);
  await shown(page);
  for (let i = 1; i <= 30; i++) server.unreadable(`offset ${i}`, "x".repeat(5000));
  await page.getByText("30 messages could not be read").click();
  const items = await page.locator("#unreadable-list li").allTextContents();
  assert.equal(items.length, 20);
  assert.ok(items[0].startsWith("offset 30: x") && items.every((text) => text.length < 400));
  await end();
});

test("a synopsis without blocks does not keep the gauge of another", async () => {
  const [spent] = [ofUsers("1")];
  const server = await serve([spent], at(Date.parse("2013-06-01T13:00:00Z")));
  const { page, end } = await on(server);
  await page.locator("#gauge-words", { hasText: "budget spent" }).waitFor();
  server.publish({ ...spent, window: { start: spent.window.end, end: "2013-06-01T13:00:00Z" }, privacy: { ...spent.privacy, blocks: [] }, ledger: { ...spent.ledger, sequence: 99 } });
  await page.locator("#gauge-words", { hasText: "unknown" }).waitFor();
  assert.equal(await page.locator("#gauge-bar").getAttribute("aria-valuenow"), "0");
  assert.equal(await page.locator("#gauge.spent").count(), 0);
  await end();
});

test("a record that pays in several windows is told what it pays in all, on small screens too", async () => {
  const [first] = EWR();
  const day = (n) => `2013-06-0${n}T05:00:00Z`;
  const blocks = [["0.9", 1], ["0.6", 2], ["0.3", 3]].map(([spent, n]) => ({ start: day(n), end: day(n + 1), spent, total: "0.9" }));
  const anew = {
    ...first, window: { start: day(1), end: day(4) }, published: day(4), panes: { over: { hopping: 3 }, newest: { start: day(3), end: day(4) } },
    privacy: { ...first.privacy, price: "0.3", blocks },
  };
  const { page, problems, end } = await on(await serve([anew], at(Date.parse(anew.published))), { width: 360, height: 740 });
  await shown(page);
  assert.equal(await page.locator("#badge-price").textContent(), "ε = 0.3 a window, of 0.9 in all");
  const [inner, outer] = await page.locator("#badge").evaluate((badge) => [badge.scrollWidth, badge.clientWidth]);
  assert.ok(inner <= outer, `${inner} pixels in ${outer}`);
  assert.doesNotMatch(await page.locator("#gauge-words").textContent(), /own budget/);
  await pill(page, "Live");
  await page.locator("#badge").click();
  const about = await page.locator("#about").textContent();
  assert.doesNotMatch(about, /budget of (its own|this window alone)/);
  // What the width of the band says, and what not.
  assert.match(about, /a higher price makes the band narrower and the guarantee weaker/);
  assert.doesNotMatch(about, /fixed before any record was read/);
  assert.deepEqual(problems, []);
  await end();
});
