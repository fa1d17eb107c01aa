// What the page may say of a synopsis, without a browser.

import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { given } from "./support/server.js";

// The modules beside bernstream.js, as the server has them.
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "bernstream-logic-"));
after(() => rmSync(folder, { recursive: true }));
for (const name of readdirSync(here("../../crates/server/src/serve/page"))) copyFileSync(here(`../../crates/server/src/serve/page/${name}`), join(folder, name));
copyFileSync(here("../../clients/javascript/bernstream.js"), join(folder, "bernstream.js"));
writeFileSync(join(folder, "package.json"), '{"type": "module"}');
const module_ = (name) => import(pathToFileURL(join(folder, name)));

const { parse } = await module_("bernstream.js");
const { Store, whyApart } = await module_("store.js");
const { change, formInWords } = await module_("sentence.js");
const { colourScale } = await module_("heat.js");
const { atMost, exhausted, isPerWindow } = await module_("price.js");
const { isFlat, largestHalfWidth, plane } = await module_("grid.js");

const EWR = (name) => given(name).filter(({ key }) => key === "EWR");

test("the error of the form is told where it is known, and with the widest band", () => {
  assert.equal(formInWords(null, [1, 2]), undefined);
  assert.match(formInWords(0.5, [1, 2]), /at most \u00b1\u00a00\.50*, .* together stay within \u00b1\u00a02\.50* in at least 9 of 10/);
});

test("two windows are compared where they hold one function of their records, and only there", () => {
  const [then, now] = EWR("curve");
  assert.equal(whyApart(now, then), undefined);
  const density = now.target.density;
  const changes = {
    "settings differ": [
      { target: { density: { ...density, kernel: { bandwidths: [11] } } } }, { basis: "affine" }, { offset: 1 }, { degree: 41 }, { order: 5 },
      { meaning: "another" }, { domain: [{ ...now.domain[0], max: 181 }] }, { digests: { ...now.digests, configuration: "00" } },
      { privacy: { ...now.privacy, adjacency: "replace_one" } },
      { privacy: { ...now.privacy, unit: { user: { column: "id", per: "1d", max_records_per_window: 2 } } } },
      { panes: { over: "cumulative", newest: now.window } },
    ],
    "private choices differ": [{ choices: [{ order: { taken: 4, candidates: [2, 4], price: "0.1" } }] }],
    "simulated": [{ synthetic: !now.synthetic }],
    "missing": [{ incomplete: true }],
    "differ in length": [{ window: { start: now.window.start, end: "2013-06-03T06:00:00Z" } }],
    "same time": [{ window: then.window }],
  };
  for (const [why, all] of Object.entries(changes)) {
    for (const one of all) assert.match(whyApart({ ...now, ...one }, then) ?? "compared", new RegExp(why), JSON.stringify(one));
  }
  // Chosen privately, and chosen alike: the price of the choice does not matter.
  const chosen = (taken, price) => ({ choices: [{ bandwidths: { taken: [taken], candidates: [[5], [10]], price } }] });
  assert.equal(whyApart({ ...now, ...chosen(10, "0.1") }, { ...then, ...chosen(10, "0.2") }), undefined);
  assert.match(whyApart({ ...now, ...chosen(10, "0.1") }, { ...then, ...chosen(5, "0.1") }), /private choices/);
});

test("a running sum is compared from where it is full, and not where it has begun anew", () => {
  const sums = EWR("rho");
  assert.match(whyApart(sums[1], sums[0]), /differ in length/);
  assert.equal(whyApart(sums[4], sums[3]), undefined);
  // One was not seen: the count says that the sum went on.
  assert.equal(whyApart(sums[5], sums[3]), undefined);
  const anew = (step) => ({ ...sums[4], panes: { ...sums[4].panes, step } });
  for (const step of [0, 3, 5]) assert.match(whyApart(anew(step), sums[3]), /started over/);
  assert.match(whyApart({ ...sums[4], ledger: { ...sums[4].ledger, id: "00" } }, sums[3]), /started over/);
});

test("of sums that share noise it is not said that what is within both bands is noise", () => {
  const curve = { xs: [0, 1], values: [1, 1], wide: [1, 1] };
  const [single] = EWR("curve");
  const [sum] = EWR("rho");
  assert.match(change(single, curve, curve), /No difference from the previous window exceeds the noise/);
  assert.match(change(sum, curve, curve), /exceeds both bands; the two share records and noise, so a smaller difference may be real/);
  assert.match(change(sum, { ...curve, values: [9, 9] }, curve), /Beyond the noise, it is higher/);
});

test("two pipelines with the same release and key are two series", () => {
  const store = new Store();
  const [first, second] = EWR("curve");
  const add = (one) => store.add(parse(one), JSON.stringify(one));
  assert.ok(add(first));
  assert.ok(add({ ...second, pipeline: "other", ledger: { id: "00", sequence: 1 } }));
  assert.ok(!add(first));
  assert.deepEqual(store.pipelines(), ["curve", "other"]);
  assert.deepEqual(store.releases("other"), ["departure-delay"]);
  assert.deepEqual(store.keys("other", "departure-delay"), ["EWR"]);
  assert.equal(store.series("curve", "departure-delay", "EWR").length, 1);
  assert.equal(store.series("other", "departure-delay", "EWR")[0].meta.window.start, second.window.start);
});

test("colours two steps apart are apart by more than the noise, and there may be one colour alone", () => {
  for (const [range, half, steps] of [[10, 1, 5], [10, 2.4, 2], [10, 2.6, 1], [10, 50, 1], [10, 1e-9, 24], [10, 0, 24]]) {
    const scale = colourScale(0, range, half, "");
    assert.equal(scale.steps, steps);
    assert.equal(scale.colours.length, steps);
    assert.equal(scale.tellsApart, steps > 2);
    for (let v = -1; v < 11; v += 0.173) {
      for (let w = v; w < 11; w += 0.173) {
        if (scale.step(w) - scale.step(v) >= 2) assert.ok(w - v > 2 * half, `${v} and ${w} at ${half}`);
      }
    }
  }
});

test("the largest half-width is that of the worst place, and not of the middle", () => {
  for (const name of ["plane", "cube", "flights-hour", "flights-late"]) {
    const synopsis = parse(given(name)[0]);
    const { domain } = synopsis.meta;
    const largest = largestHalfWidth(synopsis);
    const middle = domain.map(({ min, max }) => (min + max) / 2);
    const { xs, ys } = plane(synopsis, middle, 128);
    // Of the noise alone: where a probability is clipped, what is drawn is narrower.
    const wide = synopsis.halfWidths([xs, ys, ...middle.slice(2).map((x) => [x])]);
    assert.ok(largest >= Math.max(...wide), name);
    if (domain.length === 2) assert.ok(largest <= 1.0001 * Math.max(...wide), name);
    assert.ok(name === "flights-hour" || largest > synopsis.halfWidth(middle), name);
  }
});

test("a map is flat where one value lies within the band everywhere", () => {
  assert.ok(isFlat({ values: [0, 1, 2], wide: [1, 1, 1] }));
  assert.ok(!isFlat({ values: [0, 1, 2.1], wide: [1, 1, 1] }));
  assert.ok(isFlat({ values: [0, 9, 2], wide: [1, 9, 1] }));
});

/** A synopsis of an hour at noon whose price and blocks are as given. */
const paying = (price, blocks, more = {}) => ({
  ...EWR("curve")[0], window: { start: "2013-06-01T11:00:00Z", end: "2013-06-01T12:00:00Z" }, ...more,
  privacy: { ...EWR("curve")[0].privacy, price, blocks },
});
const block = (start, end, spent, total) => ({ start: `2013-06-01T${start}:00:00Z`, end: `2013-06-01T${end}:00:00Z`, spent, total });

test("a budget is said to be spent only where nothing is left for the next window", () => {
  const is = (price, ...blocks) => exhausted(paying(price, blocks)) !== undefined;
  assert.ok(is("0.25", block("00", "23", "1", "1.0")));
  assert.ok(is({ rho: "0.1" }, block("00", "13", { rho: "0.30" }, { rho: "0.3" })));
  assert.ok(!is("0.25", block("00", "23", "0.999999999999999999", "1")));
  assert.ok(!is("0.25", block("11", "12", "1", "1")), "the block is the window");
  assert.ok(!is("0.25", block("00", "12", "1", "1")), "the next window lies outside");
  assert.ok(!is({ epsilon: "0.1", delta: "0.1" }, block("00", "23", { epsilon: "0.5", delta: "0.2" }, { epsilon: "1", delta: "0.2" })));
});

test("a budget of its own is one block that is the window, and the badge tells what a unit has at most", () => {
  const alone = paying("1", [block("11", "12", "1", "1")]);
  assert.ok(isPerWindow(alone));
  assert.equal(atMost(alone), "ε = 1 a window");
  const panes = { over: { hopping: 3 }, newest: alone.window };
  const blocks = [block("09", "10", "0.9", "0.9"), block("10", "11", "0.6", "0.9"), block("11", "12", "0.3", "0.9")];
  const anew = paying("0.3", blocks, { panes, window: { start: "2013-06-01T09:00:00Z", end: "2013-06-01T12:00:00Z" } });
  assert.ok(!isPerWindow(anew));
  assert.equal(atMost(anew), "ε = 0.3 a window, of 0.9 in all");
  assert.ok(!isPerWindow(paying("0.3", [block("11", "12", "0.3", "0.9")], { panes })), "the first of them has one pane");
  assert.ok(!isPerWindow(paying("0.25", [block("00", "23", "0.5", "1")])));
  assert.ok(EWR("rho").every(isPerWindow), "a pane of a running sum pays once");
  assert.equal(atMost(paying({ epsilon: "1", delta: "0.000000001" }, [block("00", "23", { epsilon: "1", delta: "0.000000001" }, { epsilon: "5", delta: "0.000001" })])),
    "ε = 1, δ = 1e-9 a window, of ε = 5, δ = 1e-6 in all");
});

test("a probability and both its bands lie from 0 to 1, however large the noise", () => {
  const synopsis = parse(given("probability-2d")[0]);
  const clipped = { below: 0, above: 0 };
  const { values, outer, wide } = plane(synopsis, [0, 0], 33);
  values.forEach((value, i) => {
    for (const x of [value, outer.lower[i], outer.upper[i]]) assert.ok(x >= 0 && x <= 1, `${x}`);
    assert.ok(outer.lower[i] <= value && value <= outer.upper[i] && wide[i] <= 1);
    clipped.below += value === 0;
    clipped.above += value === 1;
  });
  assert.ok(clipped.below + clipped.above > 0, "nothing was clipped");
});

/** The rest to 1 of the bound of somebody who was so sure before. */
const restFrom = (before, epsilon) => (1 - before) / (1 - before + before * Math.exp(epsilon));

test("odds are never rounded below the bound, and never to 100 %", async () => {
  const { inPercent, restAfterEpsilon, wrongUnderDelta, wrongUnderRho } = await module_("odds.js");
  const number = (text) => Number(text.replace("almost ", "").replace("\u00a0%", ""));
  const rests = [];
  for (let epsilon = 0.0001; epsilon < 700; epsilon *= 1.01) rests.push(restAfterEpsilon(epsilon), wrongUnderDelta(epsilon, 1e-6), wrongUnderRho(epsilon));
  for (const rest of rests) {
    const [text, bound] = [inPercent(rest), 100 - 100 * rest];
    assert.ok(number(text) >= bound && text !== "100\u00a0%", `${text} of ${bound}`);
    // Nothing is added that could be mistaken for another promise.
    assert.ok(text.startsWith("almost") || number(text) - bound <= Math.max(Math.min(bound - 50, 100 - bound) / 5, 2e-8), `${text} of ${bound}`);
  }
  const shown = [0.001, 0.01, 0.019, 1, 3, 5].map((epsilon) => inPercent(restAfterEpsilon(epsilon)));
  assert.deepEqual(shown, ["50.025", "50.25", "50.48", "73.2", "95.3", "99.4"].map((text) => `${text}\u00a0%`));
  assert.equal(inPercent(wrongUnderDelta(1, 1)), "100\u00a0%");
});

test("odds in the pages are those of the page, rounded up", () => {
  const page = readFileSync(here("../../docs/concepts/epsilon.md"), "utf8");
  const rows = [...page.matchAll(/^\| ([0-9.]+) \| ([0-9.]+) % \| ([0-9.]+) % \|$/gm)];
  assert.equal(rows.length, 8);
  for (const [, epsilon, ...shown] of rows) {
    for (const [place, before] of [0.5, 0.1].entries()) {
      const [bound, said] = [100 - 100 * restFrom(before, Number(epsilon)), Number(shown[place])];
      const step = 10 ** -(shown[place].split(".")[1] ?? "").length;
      assert.ok(said >= bound && said - bound <= step, `${epsilon}: ${said} for ${bound}`);
    }
  }
  const readme = readFileSync(here("../../README.md"), "utf8");
  assert.ok(readme.includes("can become at most 73.2 % sure"));
  for (const text of [page, readme]) assert.ok(!/probability of about delta/.test(text));
});
