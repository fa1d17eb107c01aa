// What the page weighs, and how fast it draws: a frame at 60 a second has 16 ms.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { launch, open, shown } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test("the page is light, and fetches nothing from elsewhere", async (t) => {
  const folder = fileURLToPath(new URL("../../crates/server/src/serve/page", import.meta.url));
  const files = [...readdirSync(folder).map((name) => `${folder}/${name}`), fileURLToPath(new URL("../../clients/javascript/bernstream.js", import.meta.url))];
  const texts = files.map((file) => readFileSync(file));
  const bytes = texts.reduce((sum, text) => sum + text.length, 0);
  const zipped = texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
  t.diagnostic(`${files.length} files, ${bytes} bytes, ${zipped} gzipped`);
  // The bound that matters to who waits for the page is 250 kB sent, files and headers together. These are a little above what there is,
  // so that growth is noticed when it happens.
  assert.ok(bytes < 464_500, `${bytes} bytes`);
  assert.ok(zipped < 152_000, `${zipped} bytes, each file compressed by itself`);

  const server = await serve(given("curve"));
  const { page, context, problems } = await open(browser, "about:blank");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(server.address);
  await shown(page);
  assert.ok(asked.length > 5 && asked.every((address) => address.startsWith(server.address) || address.startsWith("blob:")), asked.join("\n"));
  assert.deepEqual(problems, []);
  await context.close();
  await server.stop();
});

/** A plane of a degree, its values a hill with waves. */
function plane(degree) {
  const [one] = given("plane");
  const side = degree + 1;
  const values = Array.from({ length: side * side }, (_, i) => {
    const [x, y] = [Math.floor(i / side) / degree, (i % side) / degree];
    return 5 * Math.exp(-((x - 0.4) ** 2 + (y - 0.6) ** 2) / 0.05) + Math.sin(9 * x) * 0.2;
  });
  return { ...one, degree, values };
}

for (const degree of [16, 32]) {
  test(`a map of 128 x 128 points at degree ${degree} is drawn, and how fast is told`, async (t) => {
    const server = await serve([plane(degree)]);
    const { page, context } = await open(browser, server.address);
    await shown(page);
    const times = await page.evaluate(async () => {
      const { parse } = await import("/bernstream.js");
      const { drawHeat, colourScale } = await import("/heat.js");
      const text = await fetch("/api/v1/events").then(async (response) => {
        const reader = response.body.getReader();
        let all = "";
        for (;;) {
          all += new TextDecoder().decode((await reader.read()).value);
          const found = /event: synopsis\n(?:id: .*\n)?data: (.*)\n\n/.exec(all);
          if (found) return found[1];
        }
      });
      const synopsis = parse(text);
      const along = ({ min, max }) => Array.from({ length: 128 }, (_, i) => min + ((max - min) * i) / 127.0000001);
      const axes = synopsis.meta.domain.map(along);
      const canvas = document.querySelector("canvas.map");
      const found = { evaluate: [], draw: [] };
      for (let i = 0; i < 40; i++) {
        const start = performance.now();
        const values = synopsis.evaluator().on(axes);
        const wide = synopsis.halfWidths(axes);
        const middle = performance.now();
        drawHeat(canvas, {
          x: { min: axes[0][0], max: axes[0][127], label: "x" }, y: { min: axes[1][0], max: axes[1][127], label: "y" },
          plane: { xs: axes[0], ys: axes[1], values, wide }, scale: colourScale(0, 6, 0.2, "value"), border: { at: 0 },
        });
        canvas.getContext("2d").getImageData(0, 0, 1, 1);
        found.evaluate.push(middle - start);
        found.draw.push(performance.now() - middle);
      }
      const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
      return { evaluate: median(found.evaluate), draw: median(found.draw) };
    });
    t.diagnostic(`evaluated in ${times.evaluate.toFixed(1)} ms, drawn in ${times.draw.toFixed(1)} ms (medians of 40)`);
    await context.close();
    await server.stop();
  });
}
