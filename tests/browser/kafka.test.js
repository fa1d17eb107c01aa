// The page on the output topic of a worker on a real Kafka, which is killed and comes back.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, rows, saved, shown } from "./support/browser.js";
import { background, command, freePort, program } from "./support/program.js";

const brokers = process.env.BERNSTREAM_TEST_KAFKA;
const skip = !program ? "the program is not built: cargo build, or set BERNSTREAM"
  : !brokers ? "no Kafka: set BERNSTREAM_TEST_KAFKA to its address" : false;

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** A window every two seconds; what it holds does not matter to the page. */
const CONFIGURATION = (folder, name, listen) => `
pipeline = "${name}"
windows = { origin = "2025-01-01T00:00:00Z", length = "2s", grace = "500ms", ahead = "500ms", publish_delay = "500ms" }
privacy = { unit = "record", adjacency = "add_remove", epsilon = 1.0 }
ledger = { path = "${folder}/ledger" }
serve = { listen = "${listen}" }
[input]
time = "time"
kafka = { brokers = "${brokers}", topic = "${name}", clock_slack = "300ms" }
[output.kafka]
topic = "${name}-synopses"
witness = "${name}-witness"
witness_min_insync_replicas = 1
[release]
name = "delay"
epsilon = 1.0
degree = 20
order = 3
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }]
density = { bandwidths = [15] }
`;

test("the page follows a topic, says that a killed worker is late, and goes on when it is back", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "bernstream-page-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const name = `page-${process.pid}-${Date.now()}`;
  const configuration = join(folder, "page.toml");
  const health = `127.0.0.1:${await freePort()}`;
  writeFileSync(configuration, CONFIGURATION(folder, name, health));
  command("produce", "tests/data/flights.parquet", "--brokers", brokers, "--topic", name, "--create", "1");
  command("ledger", "init", configuration);
  const start = () => background(["run", configuration], `http://${health}/healthz`);
  let worker = await start();
  t.after(() => worker.stop());
  const listen = `127.0.0.1:${await freePort()}`;
  const dashboard = await background(
    ["dashboard", "--brokers", brokers, "--topic", `${name}-synopses`, "--listen", listen], `http://${listen}/`);
  t.after(() => dashboard.stop());

  const { page, problems } = await open(browser, dashboard.address);
  const next = async (last) => (await shown(page, (release, key, start) => start > last))[2];
  const delays = [];
  let last = await next("");
  for (let i = 0; i < 5; i++) {
    last = await next(last);
    const drawn = Date.now();
    const all = await (await fetch(`${dashboard.address}api/v1/synopses`)).json();
    delays.push(drawn - Date.parse(all.find((one) => one.window.start === last).published));
  }
  t.diagnostic(`drawn ${delays.join(", ")} ms after the scheduled publication`);

  await worker.stop("SIGKILL");
  await page.locator("#status-words", { hasText: "Overdue since" }).waitFor();
  const [, , before] = await shown(page);
  worker = await start();
  await page.locator("#status-words", { hasText: "Live" }).waitFor();
  assert.ok(await next(before) > before);

  await page.locator("#play").focus();
  await page.keyboard.press("ArrowLeft");
  await page.locator("#newest").waitFor();
  const [, , held] = await shown(page);
  const table = rows((await saved(page, "#save-csv")).content);
  const theirs = await (await fetch(`${dashboard.address}api/v1/curve?points=${table.length}&window=${held}`)).json();
  const size = Math.max(...theirs.map(({ value }) => Math.abs(value)));
  theirs.forEach(({ value }, i) => assert.ok(Math.abs(table[i].value - value) <= 1e-12 * size, `row ${i}`));
  assert.deepEqual(problems, []);
});
