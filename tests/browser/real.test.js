// The page as the program serves it, over released flights and over the demonstration: its numbers are those of the Rust
// evaluator, and what is published is on the screen at once. `DASHBOARD` runs the first test on any dashboard.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, rows, saved, shoot, shown } from "./support/browser.js";
import { background, freePort, program, released } from "./support/program.js";
import { spendingOf } from "./support/spending.js";

const skip = program ? false : "the program is not built: cargo build, or set BERNSTREAM";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const json = async (address) => {
  const response = await fetch(address);
  assert.ok(response.ok, `${address}: ${response.status} ${await response.clone().text()}`);
  return response.json();
};

/** Shows a release and key by the address of the page, and says what is shown. */
async function choose(page, address, { release, key }) {
  const about = new URLSearchParams({ release });
  if (key !== null) about.set("key", key);
  await page.goto("about:blank");
  await page.goto(`${address}#${about}`);
  return shown(page, (is, of) => is === release && of === (key ?? null));
}

/** What the Rust evaluator says is what the page saves, of all releases of a dashboard that have a value at a point. */
async function compare(page, address) {
  const all = await json(`${address}api/v1/synopses`);
  assert.ok(all.length > 0);
  const whole = (one) => json(`${address}api/v1/synopses/latest?${new URLSearchParams({ release: one.release, ...(one.key ? { key: one.key } : {}), window: one.window.start })}`);
  assert.deepEqual(spendingOf(await Promise.all(all.map(whole))), await json(`${address}api/v1/spending`), "what the other tests take for the program's answer");
  const kinds = new Map(all.map((one) => [JSON.stringify([one.release, one.key ?? null]), one]));
  let compared = 0;
  for (const { release, key, target } of kinds.values()) {
    if (target === "moments") continue;
    if (target === "counts") {
      compared += await compareCounts(page, address, release);
      continue;
    }
    const [, , start] = await choose(page, address, { release, key: key ?? null });
    const table = rows((await saved(page, "#save-csv")).content);
    const about = new URLSearchParams({ release, points: Math.round(table.length ** (table.length === 201 ? 1 : 0.5)), window: start });
    if (key) about.set("key", key);
    const theirs = await json(`${address}api/v1/curve?${about}`);
    assert.equal(table.length, theirs.length);
    const size = Math.max(...theirs.map(({ value, upper }) => Math.max(Math.abs(value), Math.abs(upper))));
    theirs.forEach((row, i) => {
      for (const [name, x] of Object.entries(row)) {
        // What is not known has no column.
        if (x === null) {
          assert.equal(table[i][name], undefined, `${release}, row ${i}: ${name}`);
          continue;
        }
        const scale = ["value", "lower", "upper"].includes(name) ? size : Math.max(1, Math.abs(x));
        assert.ok(Math.abs(table[i][name] - x) <= 1e-12 * scale, `${release}, row ${i}: ${name} = ${table[i][name]}, not ${x}`);
        compared += 1;
      }
    });
  }
  return compared;
}

/** The same of counts by key: rows of the newest window, and how many numbers they have. */
async function compareCounts(page, address, release) {
  await choose(page, address, { release, key: null });
  const [head, ...lines] = (await saved(page, "#save-csv")).content.toString().trim().split("\r\n").map((line) => line.split(","));
  const theirs = await json(`${address}api/v1/keys?${new URLSearchParams({ release })}`);
  assert.deepEqual(head, Object.keys(theirs[0]));
  assert.equal(lines.length, theirs.length);
  theirs.forEach(({ key, ...numbers }, i) => {
    assert.equal(lines[i][0], key);
    Object.entries(numbers).forEach(([name, x], place) => {
      const own = lines[i][place + 1];
      if (x === null) assert.equal(own, "", `${key}: ${name}`);
      // The program inverts a characteristic function, to better than a part in a thousand of the noise.
      else assert.ok(Math.abs(own - x) <= 1e-3 * Math.abs(numbers[`${name.split("_")[0]}_upper`] - numbers[name.split("_")[0]]) + 1e-9 * Math.abs(x), `${key}: ${name} = ${own}, not ${x}`);
    });
  });
  return theirs.length * (head.length - 1);
}

test("what a dashboard shows of released flights is what the Rust evaluator says", { skip }, async (t) => {
  const flights = process.env.DASHBOARD ? null : released();
  const listen = `127.0.0.1:${await freePort()}`;
  const dashboard = process.env.DASHBOARD
    ? { address: process.env.DASHBOARD, stop: async () => {} }
    : await background(["dashboard", flights.folder, "--listen", listen, "--history", "all"], `http://${listen}/`);
  t.after(() => dashboard.stop());
  t.after(() => flights?.remove());
  const { page, problems, context } = await open(browser, dashboard.address);
  await shown(page);
  const compared = await compare(page, dashboard.address);
  t.diagnostic(`${compared} numbers compared`);
  assert.ok(compared > 1000);
  assert.deepEqual(problems, []);

  if (flights) {
    await choose(page, dashboard.address, { release: "summary", key: "EWR" });
    await page.locator("#question").fill("exp(-(dep_delay/60)^2)");
    await page.keyboard.press("Enter");
    await page.locator("text=(proved)").first().waitFor();
    const { answer } = await json(`${dashboard.address}api/v1/query?${new URLSearchParams({ release: "summary", key: "EWR", ask: "exp(-(dep_delay/60)^2)" })}`);
    const said = Number(await page.locator(".figure").first().textContent());
    assert.ok(Math.abs(said - answer.sum) <= answer.noise.half_width / 10, `${said}, not ${answer.sum}`);
    await shoot(page, "real-summary");
    await page.locator("#question").fill("sin(dep_delay");
    await page.keyboard.press("Enter");
    await page.locator(".wrong").waitFor();
  }
  await context.close();
});

test("the demonstration is live, and the page survives its restart", { skip }, async (t) => {
  const listen = `127.0.0.1:${await freePort()}`;
  const start = () => background(["demo", "--dashboard", listen], `http://${listen}/`);
  let demo = await start();
  t.after(() => demo.stop());
  const { page, problems, context } = await open(browser, demo.address);
  await page.locator("#flags .flag", { hasText: "Simulated data; no real people" }).waitFor();
  const first = await shown(page);
  // The curve is drawn when its text is in the page; publication is when the record was produced, by the same clock.
  const delays = [];
  for (let i = 0, last = first[2]; i < 3; i++) {
    const [, , window] = await shown(page, (release, key, own) => own > last);
    const drawn = Date.now();
    const latest = await json(`${demo.address}api/v1/synopses`);
    const own = latest.filter((one) => (one.window.start ?? one.window) === window).pop();
    delays.push(drawn - Date.parse(own.published));
    last = window;
  }
  t.diagnostic(`drawn ${delays.join(", ")} ms after the scheduled publication`);
  await shoot(page, "demo");

  await demo.stop();
  await page.locator("#status-words", { hasText: "Connection lost" }).waitFor();
  const [, , last] = await shown(page);
  demo = await start();
  await page.locator("#status-words", { hasText: "Live" }).waitFor();
  await shown(page, (release, key, own) => own > last);
  assert.deepEqual(problems.filter((problem) => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(problem)), []);
  await context.close();
});
