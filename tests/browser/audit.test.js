// The page that an audit writes, as whoever files it sees it.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, open, shoot } from "./support/browser.js";
import { command, program } from "./support/program.js";

const skip = program ? false : "the program is not built: cargo build, or set BERNSTREAM";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test("the report of an audit stands for itself: tables, and pictures in which no curve hides another", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "bernstream-audit-"));
  try {
    const file = join(folder, "audit.html");
    command("audit", "config/flights.toml", "--minutes", "0.1", "--seed", "1", "--html", file);
    const { page, problems, context } = await open(browser, "about:blank");
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(pathToFileURL(file).href);
    assert.match(await page.locator("h1").innerText(), /^Audit of config\/flights\.toml: passed/);

    const heads = await page.locator("table").evaluateAll((tables) => tables.map((table) =>
      [...table.querySelectorAll("th")].map((cell) => cell.innerText)));
    assert.deepEqual(heads.map((head) => head[0]), ["release", "test", "test"], "replays, the noise, the attack");
    const cells = await page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.cells.length));
    assert.ok(cells.length > 8 && cells.every((count) => count === 4 || count === 5), `${cells}`);
    assert.equal(await page.locator("pre").count(), 0);

    // What the axes show is written at them.
    const written = (await page.locator("svg").evaluateAll((all) => all.map((one) => one.textContent))).join(" ");
    for (const words of ["sum of the absolute values of a draw / scale", "false positive rate", "false negative rate", "calculated"]) {
      assert.ok(written.includes(words), `${words}: ${written}`);
    }
    // The dashes of the calculated curve lie on top of the measured one: they are what is there.
    const [seen, dashes] = await page.locator("svg").last().evaluate((picture) => {
      picture.scrollIntoView({ block: "center" });
      const lines = [...picture.querySelectorAll("polyline")].filter((line) => line.getAttribute("stroke") === "#444444");
      const inside = lines.filter((line) => line.closest("svg") === picture && line.points.length === 2 &&
        Math.abs(line.points[0].x - line.points[1].x) > 1 && Math.abs(line.points[0].y - line.points[1].y) > 1);
      const isSeen = (line) => {
        const { left, right, top, bottom } = line.getBoundingClientRect();
        return document.elementFromPoint((left + right) / 2, (top + bottom) / 2)?.getAttribute("stroke") === "#444444";
      };
      return [inside.filter(isSeen).length, inside.length];
    });
    assert.ok(dashes > 10 && seen === dashes, `${seen} of ${dashes} dashes are seen`);

    // Nothing is wider than the page, and nothing is loaded.
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    await shoot(page, "audit");
    assert.deepEqual([asked.length, problems], [1, []]);
    await context.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
