// <bernstream-curve src> in a page of somebody else.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, open, until } from "./support/browser.js";
import { given } from "./support/server.js";

const file = (path) => readFileSync(fileURLToPath(new URL(path, import.meta.url)));
const named = { ...given("curve")[0], names: { title: "Delays <b>of</b> flights", axes: [{ label: "departure delay", unit: "minute" }] } };
const PAGES = new Map([
  ["/", ["text/html", "<!doctype html><meta charset=utf-8><title>Elsewhere</title><script type=module src=curve.js></script><bernstream-curve src=curve.json></bernstream-curve>"]],
  ["/curve.js", ["text/javascript", file("../../clients/javascript/curve.js")]],
  ["/bernstream.js", ["text/javascript", file("../../clients/javascript/bernstream.js")]],
  ["/curve.json", ["application/json", JSON.stringify(named)]],
  ["/map.json", ["application/json", JSON.stringify(given("plane")[0])]],
  ["/broken.json", ["application/json", "{}"]],
]);

let browser, server, address;
before(async () => {
  browser = await launch();
  server = createServer((request, response) => {
    const [kind, text] = PAGES.get(request.url) ?? [];
    response.writeHead(kind ? 200 : 404, { "content-type": kind ?? "text/plain", "content-security-policy": "default-src 'self'" }).end(text);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  address = `http://127.0.0.1:${server.address().port}/`;
});
after(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
});

test("a curve with its band and its names, under a strict content policy", async () => {
  const { page, problems, context } = await open(browser, address, { width: 800, height: 450 });
  await page.locator("bernstream-curve polyline.curve").waitFor();
  const about = await page.locator("bernstream-curve svg").getAttribute("aria-label");
  assert.match(about, /^Delays <b>of<\/b> flights, .* by departure delay \(minute\)\. The band covers the noise at all points with 95 % probability\.$/);
  assert.equal(await page.locator("bernstream-curve b").count(), 0);
  const places = async (name) => (await page.locator(name).getAttribute("points")).split(" ").map((place) => place.split(",").map(Number));
  const [curve, band] = [await places("polyline.curve"), await places("polygon.band")];
  assert.equal(band.length, 2 * curve.length);
  curve.forEach(([, y], i) => assert.ok(band[i][1] <= y && y <= band[band.length - 1 - i][1], `point ${i}`));
  await page.screenshot({ path: fileURLToPath(new URL("shots/element.png", import.meta.url)) });
  assert.deepEqual(problems.filter((one) => !one.includes("favicon") && !one.includes("404")), []);
  await context.close();
});

test("what is no curve is told, and another source is drawn", async () => {
  const { page, context } = await open(browser, address);
  const ask = (src) => page.locator("bernstream-curve").evaluate((element, name) => element.setAttribute("src", name), src);
  const told = (pattern) => until(String(pattern), async () => pattern.test(await page.locator("bernstream-curve").innerText()));
  await ask("map.json");
  await told(/No curve: it has 2 axes, and a curve has one/);
  await ask("broken.json");
  await told(/No curve: not a synopsis/);
  await ask("nowhere.json");
  await told(/No curve: nowhere\.json answered 404/);
  await ask("curve.json");
  await page.locator("bernstream-curve polyline.curve").waitFor();
  await context.close();
});
