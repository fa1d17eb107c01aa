// Every kind of synopsis is drawn, and its numbers are those of the evaluator.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parse } from "../../clients/javascript/bernstream.js";
import { launch, open, rows, saved, settled, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** Opens the page on a file of synopses, shortly after the last of them was published. */
async function look(name, options) {
  const synopses = given(name);
  const last = synopses[synopses.length - 1];
  const server = await serve(synopses, { now: () => new Date(Date.parse(last.published) + 1000) });
  const { page, problems, context } = await open(browser, server.address, options);
  await shown(page);
  return { synopses, last, page, problems, end: async () => { await context.close(); await server.stop(); } };
}

const isNear = (a, b, size, what) => assert.ok(Math.abs(a - b) <= 1e-12 * size, `${what}: ${a}, not ${b}`);

const CELLS = ["density-cells-1d-box", "density-cells-1d-quadratic", "density-cells-2d", "density-cells-2d-covariance", "density-cells-3d"];

for (const name of ["curve", "rho", "flights-arrival", "bayes", "plane", "flights-hour", "cube", "side", "flights-late", ...CELLS]) {
  test(`the numbers of ${name} are those of the evaluator`, async () => {
    const { page, problems, end, synopses } = await look(name);
    const [release, key, start] = await shown(page);
    const synopsis = parse(synopses.filter((one) => one.release === release && one.key === key && one.window.start === start).pop());
    const { domain } = synopsis.meta;
    const { content, name: file } = await saved(page, "#save-csv");
    assert.ok(file.endsWith(".csv") && file.startsWith(release), file);
    const table = rows(content);
    assert.equal(table.length, domain.length === 1 ? 201 : 41 * 41);
    const size = Math.max(...table.map(({ value }) => Math.abs(value)));
    const pointwise = synopsis.pointwise();
    for (const row of table.filter((_, i) => i % 7 === 0)) {
      const at = domain.map(({ column }) => row[column]);
      isNear(row.value, synopsis.evaluate(at), size, `${name} at ${at}`);
      const [lower, upper] = synopsis.interval(at);
      isNear(row.upper - row.lower, upper - lower, size, "the band");
      const [low, high] = synopsis.evaluator().interval(at, pointwise.halfWidth(at));
      isNear(row.pointwise_upper - row.pointwise_lower, high - low, size, "the narrow band");
      const form = synopsis.formError();
      assert.equal(row.total_upper === undefined, form === null, "noise and form, where the form is known");
      if (form !== null) isNear(row.total_upper - row.total_lower, upper - lower + 2 * form, size + form, "noise and form");
    }
    const json = JSON.parse((await saved(page, "#save-json")).content);
    assert.deepEqual(json.values, [...synopsis.values]);
    const png = (await saved(page, "#save-png")).content;
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    await shoot(page, name);
    assert.deepEqual(problems, []);
    await end();
  });
}

test("cells are told as what they are, and their best reading where it is another", async () => {
  for (const name of CELLS) {
    const { page, problems, end, last } = await look(name);
    await page.locator("#about-open").click();
    await page.locator("#about[open]").waitFor();
    const told = await page.locator("#about").textContent();
    const { spline, steps } = last.basis.cells;
    assert.ok(told.includes(`Counts of records on a grid of ${steps.join(" \u00d7 ")} steps, each with its own noise`), told);
    assert.equal(told.includes("nearest node"), spline === "box", told);
    assert.equal(told.includes("nonnegative"), last.reading === "nonnegative", told);
    assert.deepEqual(problems, []);
    await end();
  }
});

/** Rows of pixels with the colour of the curve, a mean for every column that has any. */
const curvePixels = (canvas) => {
  const pen = canvas.getContext("2d");
  const { data, width, height } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const style = getComputedStyle(document.documentElement).getPropertyValue("--curve").trim();
  const wanted = style.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
  const columns = [];
  for (let x = 0; x < width; x++) {
    const found = [];
    for (let y = 0; y < height; y++) {
      const at = 4 * (y * width + x);
      if (wanted.every((c, i) => Math.abs(data[at + i] - c) < 3)) found.push(y);
    }
    if (found.length > 0) columns.push([x, found.reduce((a, b) => a + b) / found.length]);
  }
  return columns;
};

test("the curve on the screen is the function, up to the scale", async () => {
  const { page, last, end } = await look("curve");
  await page.uncheck("#ghost");
  await page.locator(".reader input").fill("180");
  await settled(page);
  const [release, key] = await shown(page);
  assert.equal(release, last.release);
  const synopsis = parse(given("curve").filter((one) => one.key === key).pop());
  const columns = await page.locator("canvas.plot").evaluate(curvePixels);
  const inside = columns.slice(6, -12);
  const [left, right] = [columns[0][0], columns[columns.length - 1][0]];
  // The right end has the mark of the crosshair; the place of a column follows from the ends of the curve.
  const value = ([x]) => synopsis.evaluate(-30 + (210 * (x - left - 0.5)) / (right - 4.5 - left));
  const pairs = inside.map((column) => [value(column), column[1]]);
  const mean = (list) => list.reduce((a, b) => a + b) / list.length;
  const [v, y] = [mean(pairs.map((p) => p[0])), mean(pairs.map((p) => p[1]))];
  const slope = pairs.reduce((s, p) => s + (p[0] - v) * (p[1] - y), 0) / pairs.reduce((s, p) => s + (p[0] - v) ** 2, 0);
  const worst = Math.max(...pairs.map((p) => Math.abs(p[1] - y - slope * (p[0] - v))));
  assert.ok(slope < -10, `larger values are not higher: ${slope}`);
  assert.ok(worst < 4, `the curve is ${worst} pixels off`);
  await end();
});

test("one scale for all windows, and the ghost is grey where the noise could be the difference", async () => {
  const { page, end } = await look("curve");
  const scale = () => page.locator("canvas.plot").evaluate((canvas) => {
    const pen = canvas.getContext("2d");
    return [...pen.getImageData(0, 0, 22, canvas.height).data].reduce((hash, byte) => (hash * 31 + byte) % 1000000007, 7);
  });
  const labels = await scale();
  for (let i = 0; i < 4; i++) {
    const [, , start] = await shown(page);
    await page.keyboard.press("ArrowLeft");
    await shown(page, (release, key, now) => now < start);
    assert.equal(await scale(), labels, "the axis of values has changed with the window");
  }
  await end();
});

test("a window that only the noise parts from the one before shows no difference", async () => {
  const [first, second] = given("curve").filter((one) => one.key === "EWR");
  const same = { ...second, values: first.values.map((v, i) => v + 0.5 * first.noise.scale * (i % 2 ? 1 : -1)) };
  const server = await serve([first, same], { now: () => new Date("2013-06-04T05:00:00Z") });
  const { page, context } = await open(browser, server.address);
  await shown(page);
  assert.match(await page.locator("#sentence").textContent(), /No difference from the previous window exceeds the noise/);
  assert.match(await page.locator(".reading").textContent(), /no difference beyond the noise/);
  const beyond = await page.locator("canvas.plot").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += data[i] === 0xb4 && data[i + 1] === 0x50 && data[i + 2] === 0x0b;
    return count;
  });
  assert.equal(beyond, 0);
  // The negative control: a window ten times the other is told.
  await server.publish({ ...second, values: first.values.map((v) => 10 * v), window: { start: second.window.end, end: "2013-06-04T05:00:00Z" }, published: "2013-06-04T05:00:00Z", ledger: { ...second.ledger, sequence: 99 } });
  await shown(page, (release, key, start, sequence) => sequence === 99);
  assert.match(await page.locator("#sentence").textContent(), /Beyond the noise, it is higher/);
  await context.close();
  await server.stop();
});

test("brighter on the map is more", async () => {
  const { page, end, last } = await look("plane");
  const synopsis = parse(last);
  const picture = await page.locator("canvas.map").evaluate((canvas) => {
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return { data: [...data], width, height };
  });
  // The picture's frame: the first and last column and row whose pixels are neither paper nor grid.
  const light = (x, y) => {
    const at = 4 * (Math.round(y) * picture.width + Math.round(x));
    const [r, g, b] = picture.data.slice(at, at + 3);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  // The map is the longest opaque run of a row and of a column.
  const run = (count, isOpaque) => {
    let [best, start] = [[0, 0], 0];
    for (let i = 0; i <= count; i++) {
      if (i < count && isOpaque(i)) continue;
      if (i - start > best[1] - best[0]) best = [start, i];
      start = i + 1;
    }
    return best;
  };
  const opaque = (x, y) => picture.data[4 * (y * picture.width + x) + 3] === 255;
  const [left, right] = run(picture.width, (x) => opaque(x, Math.round(picture.height * 0.3)));
  const [top, bottom] = run(picture.height, (y) => opaque(left + 9, y));
  const value = (x, y) => synopsis.evaluate([
    -30 + (150 * (x - left)) / (right - left), 5 + (19 * (bottom - y)) / (bottom - top)]);
  let compared = 0;
  const at = (i, n) => 0.08 + (0.84 * ((i * 0.6180339887 * n) % 1));
  for (let i = 1; i < 400; i++) {
    const [a, b] = [[left + (right - left) * at(i, 1), top + (bottom - top) * at(i, 3)], [left + (right - left) * at(i, 7), top + (bottom - top) * at(i, 11)]];
    if (Math.min(value(...a), value(...b)) < 0.5 || Math.abs(value(...a) - value(...b)) < 1.2) continue;
    compared += 1;
    assert.equal(light(...a) > light(...b), value(...a) > value(...b), `${a} and ${b}`);
  }
  assert.ok(compared > 60, `only ${compared} pairs`);
  await end();
});

test("the legend of a map says what its colours tell, and a drowned map is hatched all over", async () => {
  const clear = await look("plane");
  const told = (page, words) => page.locator("#legend li", { hasText: words }).isVisible();
  assert.ok(await told(clear.page, "two steps or more apart differ by more than the noise"));
  for (const words of ["too large for the colours", "hatched all over"]) assert.ok(!await told(clear.page, words));
  await clear.end();
  for (const [times, words] of [[1000, "hatched all over"]]) {
    const drowned = given("plane").map((one) => ({
      ...one, noise: { ...one.noise, scale: times * one.noise.scale },
      band: { ...one.band, half_width: times * one.band.half_width, pointwise: times * one.band.pointwise },
    }));
    const server = await serve(drowned, { now: () => new Date(drowned.at(-1).published) });
    const { page, context } = await open(browser, server.address);
    await shown(page);
    assert.ok(await told(page, words), `${times}: ${await page.locator("#legend").innerText()}`);
    assert.ok(!await told(page, "two steps or more apart"));
    await shoot(page, `map-noise-${times}`);
    await context.close();
    await server.stop();
  }
});

test("a crosshair moves the slices, and the third axis has a slider", async () => {
  const { page, end, synopses } = await look("cube");
  const synopsis = parse(synopses[synopses.length - 1]);
  await page.getByLabel("Slice at distance").fill("750");
  await page.getByLabel("Read at dep_delay").fill("0");
  await page.getByLabel("Read at hour").fill("9.75");
  await settled(page);
  const reading = await page.locator(".reading").textContent();
  const said = Number(reading.match(/: ([\d.]+)\u00a0±/)[1]);
  const true_ = synopsis.evaluate([0, 9.75, 750]);
  assert.ok(Math.abs(said - true_) <= synopsis.halfWidth([0, 9.75, 750]) / 10, `${reading}, not ${true_}`);
  await page.locator("canvas.map").scrollIntoViewIfNeeded();
  const box = await page.locator("canvas.map").boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await until("another reading", async () => await page.locator(".reading").textContent() !== reading);
  await end();
});

test("twenty plausible curves are drawn, and told apart from the published one", async () => {
  const { page, end, problems } = await look("curve");
  const ink = () => page.locator("canvas.plot").evaluate((canvas) => canvas.toDataURL().length);
  const without = await ink();
  await page.check("#plausible");
  await until("more ink", async () => await ink() > without);
  assert.ok(await page.getByText("20 plausible curves: the noise could have turned each into this one").isVisible());
  await page.evaluate(() => window.scrollTo(0, 0));
  await shoot(page, "plausible");
  assert.deepEqual(problems, []);
  await end();
});

test("moments are asked, and the answer comes with its errors", async () => {
  const above = (x) => (1 + Math.tanh((x - 40) / 18)) / 2;
  const { page, problems, end, synopses } = await look("summary");
  const [, key, start] = await shown(page);
  const synopsis = parse(synopses.find((one) => one.key === key && one.window.start === start));
  await page.locator(".figure").first().waitFor();
  // The mean comes first where a mean is asked for.
  const figure = async () => Number((await page.locator(".figure").first().textContent()).replace("\u2212", "-"));
  assert.equal(await page.locator(".answer h3").first().textContent(), "Mean dep_delay");
  const { mean } = synopsis.query((x) => x);
  assert.ok(Math.abs(await figure() - mean.value) <= mean.noise.halfWidth / 10, `${await figure()}, not ${mean.value}`);
  await page.getByRole("button", { name: "dep_delay above 40" }).click();
  await page.locator(".answer h3", { hasText: "Share of all records" }).waitFor();
  await page.locator(".figure").first().waitFor();
  assert.match(await page.locator(".answer").textContent(), /The edges are smoothed: what is less than about 18 from one counts in part/);
  const answer = synopsis.query(above);
  const said = await figure();
  assert.ok(Math.abs(said - answer.sum) <= answer.noise.halfWidth / 10, `${said}, not ${answer.sum}`);
  assert.match(await page.locator(".answer").textContent(), /the noise is within ± \d+ with 95 % probability.*truncation error/);
  await page.waitForTimeout(400);
  await shoot(page, "summary");
  await page.getByRole("button", { name: "Mean dep_delay" }).click();
  await page.check("#table-switch");
  await page.waitForFunction(() => document.querySelectorAll("#table tbody tr").length === 5);
  const { content } = await saved(page, "#save-csv");
  assert.match(content.toString(), /^window_start,window_end,question,sum,lower,upper,truncation\r\n2013-01-01T05:00:00Z/);
  assert.deepEqual(problems, []);
  await page.locator("#question").fill("sin(");
  await page.keyboard.press("Enter");
  await page.locator(".wrong").waitFor();
  assert.match(await page.locator(".wrong").textContent(), /sin\(: column 1/);
  await end();
});

test("a curve is read as its synopsis says is closer, and that is named; its band and its counts are of the published values", async () => {
  const [closer] = given("density-cells-1d-quadratic");
  assert.equal(closer.reading, "nonnegative");
  const { reading, ...plain } = closer;
  for (const one of [closer, plain]) {
    const server = await serve([one]);
    const { page, problems, context } = await open(browser, server.address);
    await shown(page);
    const synopsis = parse(one);
    // Where both readings are furthest apart, on the steps of the slider.
    const places = Array.from({ length: 21 }, (_, i) => -30 + 10 * i);
    const apart = (x) => Math.abs(synopsis.evaluate(x, "nonnegative") - synopsis.evaluate(x));
    const x = places.reduce((best, place) => (apart(place) > apart(best) ? place : best));
    await page.getByLabel("Read at dep_delay").fill(String(x));
    await settled(page);
    const said = await page.locator(".reading").textContent();
    const numbers = said.split(/per unit of dep_delay[^:]*: /)[1].match(/[\u2212\d.]+/g).map((text) => Number(text.replace("\u2212", "-")));
    const half = synopsis.halfWidth(x);
    const wanted = synopsis.evaluate(x, one.reading ?? undefined);
    assert.ok(apart(x) > half / 5, `the readings are ${apart(x)} apart`);
    assert.ok(Math.abs(numbers[0] - wanted) < half / 20, `${said}, not ${wanted}`);
    const name = 'Read by "nonnegative", which smooths the counts and leaves none below 0';
    assert.equal((await page.locator("#sentence").textContent()).includes(name), one === closer);
    assert.equal(await page.locator("#curve-words").textContent(), one === closer ? 'curve read by "nonnegative", closer than the published one' : "published curve");
    if (one === closer) {
      const [lower, upper] = numbers.slice(1, 3);
      assert.ok(Math.abs(lower - synopsis.interval(x)[0]) < half / 20 && Math.abs(upper - synopsis.interval(x)[1]) < half / 20, said);
      const { content } = await saved(page, "#save-csv");
      assert.ok(rows(content).every((row) => Math.abs(row.value_nonnegative - synopsis.evaluate(row.dep_delay, "nonnegative")) < 1e-9));
      await shoot(page, "reading");
    }
    await page.getByRole("button", { name: "select a range" }).click();
    await page.getByLabel("From dep_delay, in numbers").fill("-30");
    await page.getByLabel("To dep_delay, in numbers").fill("180");
    await page.keyboard.press("Enter");
    await settled(page);
    const [, count] = (await page.locator("#range-found dd").first().textContent()).match(/^([\u2212\d.]+)/);
    assert.ok(Math.abs(Number(count.replace("\u2212", "-")) - synopsis.mass()) < 10, `${count}, not ${synopsis.mass()}`);
    assert.deepEqual(problems, []);
    await context.close();
    await server.stop();
  }
});

test("what no band covers is said: what the form cannot follow, and where a fit is drawn to", async () => {
  const said = {
    "density-1d": [/Not in it: what a polynomial of degree \d+ cannot follow\. The latter is at most \u00b1\u00a0[\d.]+, wherever the records are: noise and form together stay within \u00b1\u00a0[\d.]+ in at least 9 of 10 windows\./, undefined],
    "density-cells-1d-box": [/Not in it: what changes within a cell \([\d.]+ of dep_delay\)\. The latter is at most \u00b1\u00a0[\d.]+,/, undefined],
    "density-points-1d": [/Not in it: what \d+ kernel functions cannot follow\.(?! The latter)/, undefined],
    "regression-priestley-chao-1d": [/Not in it: what a polynomial of degree 25 cannot follow\./, undefined],
    "regression-points-1d": [/cannot follow, and that the fit is drawn towards 45 where records are few\./, "noise alone; with few records drawn towards 45"],
    "probability-2d": [/of degree 6 cannot follow, and that the fit is drawn towards 0\.5 where records are few\./, "noise alone; with few records drawn towards 0.5"],
    "classifier-machine-1d": [/Not in it: what a polynomial of degree 20 cannot follow\./, undefined],
    "cells-number-1d": [/Not in it: what changes within a cell \([\d.]+ of dep_delay\) or a bandwidth\./, undefined],
  };
  for (const [name, [sentence, reading]] of Object.entries(said)) {
    const { page, problems, end } = await look(name);
    assert.match(await page.locator("#sentence").textContent(), sentence, name);
    const words = await page.locator(".reading").textContent();
    assert.equal(words.includes("drawn towards"), reading !== undefined, name);
    assert.ok(words.includes(reading ?? ""), words);
    const isKnown = name === "density-1d" || name === "density-cells-1d-box";
    assert.equal(/with what the form cannot follow \u00b1\u00a0[\d.]+/.test(words), isKnown, words);
    await page.check("#table-switch");
    assert.equal((await page.locator("#table th").allTextContents()).includes("with the form"), isKnown, name);
    assert.equal((await page.locator("#table caption").textContent()).includes("noise and form stay within together"), isKnown);
    assert.deepEqual(problems, []);
    await end();
  }
});

test("a count of a range and the value over time say what the form adds, as the client reckons it", async () => {
  for (const name of ["curve", "rho", "density-1d", "density-cells-1d-quadratic", "density-points-1d"]) {
    const { page, problems, end, last } = await look(name);
    const { domain: [{ min, max }] } = last;
    await page.getByRole("button", { name: "select a range" }).click();
    const [from, to] = [0, 1].map((i) => page.locator("#range-body input[type=number]").nth(i));
    await from.fill(String(min + 0.3 * (max - min)));
    await from.press("Enter");
    await to.fill(String(min + 0.6 * (max - min)));
    await to.press("Enter");
    const [release, key, start] = await shown(page);
    const synopsis = parse(given(name).filter((one) => one.release === release && one.key === key && one.window.start === start).pop());
    const found = synopsis.integrate([min + 0.3 * (max - min), min + 0.6 * (max - min)]);
    let told = "";
    // The page tells the range of before until it has reckoned this one.
    await until("the count of the range", async () => {
      told = await page.locator("#range-found dd").first().textContent();
      const [, half, total] = told.match(/\u00b1\u00a0([\d.]+)(?: \u00b7 with what the form cannot follow \u00b1\u00a0([\d.]+))?$/) ?? [];
      if (total === undefined) return half !== undefined && found.formError === null;
      // Rounded to two digits, and of a width that is up to 8 % above the exact quantile.
      const most = Number(half) + found.formError;
      return Math.abs(Number(total) - most) < 0.06 * most && Math.abs(Number(half) - found.noise.halfWidth) < 0.12 * found.noise.halfWidth;
    }, () => `${name}: ${told}, ${found.formError}`);
    if (await page.locator("#overtime").isVisible()) {
      const hint = await page.locator("#overtime-hint").textContent();
      assert.equal(/what the form cannot follow are within \u00b1\u00a0[\d.]+ in at least 9 of 10/.test(hint), found.formError !== null, hint);
    }
    assert.deepEqual(problems, []);
    await end();
  }
});

test("a question is fitted once: its weights answer every window and key", async () => {
  const synopses = given("summary");
  const server = await serve(synopses);
  const { page, problems, context } = await open(browser, server.address);
  await shown(page);
  await page.locator(".figure").first().waitFor();
  assert.equal(server.asked, 1);
  const figure = async () => Number((await page.locator(".figure").first().textContent()).replace("\u2212", "-"));
  const keys = [...new Set(synopses.map(({ key }) => key))];
  for (const key of [...keys].reverse()) {
    await page.evaluate((name) => { location.hash = `release=summary&key=${name}`; }, key);
    await shown(page, (_, own) => own === key);
    await settled(page);
    const { mean } = parse(synopses.filter((one) => one.key === key).pop()).query((x) => x);
    assert.ok(Math.abs(await figure() - mean.value) <= mean.noise.halfWidth / 10, `${key}: ${await figure()}, not ${mean.value}`);
    await page.keyboard.press("Home");
    await settled(page);
    const first = parse(synopses.find((one) => one.key === key)).query((x) => x).mean;
    assert.ok(Math.abs(await figure() - first.value) <= first.noise.halfWidth / 10, `${key}: ${await figure()}, not ${first.value}`);
  }
  assert.equal(server.asked, 1);
  await page.getByRole("button", { name: "dep_delay above 40" }).click();
  await until("the second question", async () => server.asked === 2 && await page.locator(".answer h3", { hasText: "Share of all" }).isVisible());
  assert.deepEqual(problems, []);
  await context.close();
  await server.stop();
});

test("a map of change shows where two windows differ beyond the noise, and its sentence on how much", async () => {
  const { page, problems, end, synopses } = await look("plane");
  const [then, now] = synopses.slice(-2).map((one) => parse(one));
  const axes = now.meta.domain.map(({ min, max }) => Array.from({ length: 128 }, (_, i) => (i === 127 ? max : min + ((max - min) * i) / 127)));
  const [a, b, wide, wider] = [now.evaluator().on(axes), then.evaluator().on(axes), now.halfWidths(axes), then.halfWidths(axes)];
  const share = (sign) => Math.round((100 * [...a].filter((value, i) => sign * (value - b[i]) > wide[i] + wider[i]).length) / a.length);
  assert.ok(share(1) > 0 && share(1) < 100, "there is something to see");
  const sentence = `it is higher on ${share(1)} % of the map and lower on ${share(-1)} %; elsewhere there is no difference beyond the noise.`;
  const change = page.locator("canvas.change");
  assert.ok((await change.getAttribute("aria-label")).includes(sentence), await change.getAttribute("aria-label"));
  assert.ok((await page.locator("#sentence").textContent()).includes(sentence));
  // The share of the picture that is tinted as higher is that of the numbers; its frame has grey and white alone.
  const tinted = await change.evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) counts.set(data.slice(i, i + 3).join(), (counts.get(data.slice(i, i + 3).join()) ?? 0) + 1);
    return [...counts].filter(([rgb]) => { const [r, g, blue] = rgb.split(",").map(Number); return Math.max(r, g, blue) - Math.min(r, g, blue) > 12; }).reduce((sum, [, n]) => sum + n, 0) / (canvas.width * canvas.height);
  });
  assert.ok(tinted > 0.5 * ((share(1) + share(-1)) / 100), `${tinted} of the picture is tinted`);
  await shoot(page, "change");
  await page.uncheck("#ghost");
  await settled(page);
  assert.ok(await change.isHidden());
  await page.check("#ghost");
  await page.keyboard.press("Home");
  await settled(page);
  assert.ok(await change.isHidden(), "the first window has none before it");
  assert.ok((await saved(page, "#save-png")).content.length > 1000);
  assert.deepEqual(problems, []);
  await end();
});
