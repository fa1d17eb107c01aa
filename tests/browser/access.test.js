// The page without a mouse, without eyes, on small screens, and with names that mean harm.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, settled, shoot, shown, until } from "./support/browser.js";
import { given, serve } from "./support/server.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

async function look(name, options, change = (synopsis) => synopsis) {
  const synopses = given(name).map(change);
  const server = await serve(synopses, { now: () => new Date(Date.parse(synopses.at(-1).published) + (options?.ahead ?? 0)) });
  const { page, problems, context } = await open(browser, server.address, options);
  await shown(page);
  return { page, context, problems, synopses, server, end: async () => { await context.close(); await server.stop(); } };
}

test("arrows go through windows, space plays, and all can be reached with the tab key", async () => {
  const { page, end } = await look("curve");
  const at = () => page.locator("#position").textContent();
  const is = (words) => page.locator("#position", { hasText: words }).waitFor();
  await page.keyboard.press("ArrowLeft");
  await is("window 9 of 10");
  await page.keyboard.press("Home");
  await is("window 1 of 10");
  await page.keyboard.press("ArrowRight");
  await is("window 2 of 10");
  await page.keyboard.press(" ");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.keyboard.press(" ");
  await settled(page);
  const where = await at();
  await page.waitForTimeout(1000);
  assert.equal(await at(), where);
  await page.keyboard.press("End");
  await is("window 10 of 10");

  const reached = new Set();
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    const { name, isVisible } = await page.evaluate(() => {
      const own = document.activeElement;
      const style = getComputedStyle(own);
      return { name: own.id || own.className || own.getAttribute("aria-label"), isVisible: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
    });
    if (name) assert.ok(isVisible, `the focus on ${name} cannot be seen`);
    reached.add(name);
  }
  for (const id of ["badge", "gauge", "key", "back", "play", "scrubber", "small", "ghost", "plausible", "table-switch", "about-open", "save-csv", "save-json", "save-png"]) {
    assert.ok(reached.has(id), `${id} is not reached, only ${[...reached]}`);
  }
  // The drawer opens and closes by keyboard, and gives the focus back.
  await page.locator("#badge").focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.getByRole("dialog", { name: "How this is protected" }).isVisible());
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#about").isHidden());
  assert.equal(await page.evaluate(() => document.activeElement.id), "badge");
  await end();
});

test("the arrows of a slider or a field are its own", async () => {
  const { page, end } = await look("curve");
  await page.getByLabel("Read at dep_delay").focus();
  const before_ = await page.locator(".place").textContent();
  await page.keyboard.press("ArrowLeft");
  await until("another place", async () => await page.locator(".place").textContent() !== before_);
  assert.equal(await page.locator("#position").textContent(), "window 10 of 10");
  await end();
});

test("each picture has a sentence, and the numbers a table", async () => {
  for (const name of ["curve", "plane", "side", "flights-late"]) {
    const { page, end } = await look(name);
    for (const picture of await page.getByRole("img").all()) {
      const sentence = await picture.getAttribute("aria-label");
      assert.ok(sentence.length > 40, `${name}: ${sentence}`);
      assert.doesNotMatch(sentence, /NaN|undefined|null|Infinity/);
    }
    await page.check("#table-switch");
    const table = page.getByRole("table");
    // Drawn with the next frame.
    await table.locator("tbody tr").nth(15).waitFor();
    assert.doesNotMatch(await table.textContent(), /NaN|undefined|null|Infinity/);
    assert.match(await table.locator("caption").textContent(), /rounded to the noise/);
    await end();
  }
});

test("the sentence says of a peak only what the band allows", async () => {
  const clear = await look("curve");
  assert.match(await clear.page.locator("canvas.plot").getAttribute("aria-label"), /It is largest near dep_delay = −\d, at \d\.\d\d\u00a0±\u00a00\.\d\d; the noise allows −\d+ to \d+\./);
  await clear.end();
  // Noise a hundred times as large: there is nothing to say of a peak.
  const loud = (one) => ({ ...one, noise: { ...one.noise, scale: 100 * one.noise.scale }, band: { ...one.band, half_width: 100 * one.band.half_width, pointwise: 100 * one.band.pointwise } });
  const drowned = await look("curve", {}, loud);
  assert.match(await drowned.page.locator("canvas.plot").getAttribute("aria-label"), /The noise hides where it is largest/);
  await shoot(drowned.page, "drowned");
  await drowned.end();
});

test("a new window is announced politely, and not in a rush", async () => {
  const time = Date.now();
  const { page, context, server, synopses, end } = await look("curve", { ahead: 5 * 86_400_000, time });
  const region = page.locator("#spoken");
  assert.equal(await region.getAttribute("aria-live"), "polite");
  const first = await region.textContent();
  assert.match(first, /window 10 Jun/);
  const last = synopses.filter(({ key }) => key === "EWR").at(-1);
  const publish = async (i) => {
    const later = (time) => new Date(Date.parse(time) + i * 86_400_000).toISOString();
    server.publish({ ...last, window: { start: later(last.window.start), end: later(last.window.end) }, published: later(last.published), ledger: { ...last.ledger, sequence: 1000 + i } });
    await shown(page, (release, key, start, sequence) => sequence === 1000 + i);
  };
  for (let i = 1; i < 4; i++) await publish(i);
  assert.equal(await region.textContent(), first);
  await context.clock.setFixedTime(time + 16_000);
  await publish(4);
  assert.match(await region.textContent(), /window 14 Jun/);
  await end();
});

test("nothing moves by itself where less motion is wanted", async () => {
  const { page, end } = await look("curve", { calm: true });
  const moving = await page.evaluate(() => document.getAnimations().length);
  assert.equal(moving, 0);
  await page.keyboard.press("Home");
  await page.locator("#position", { hasText: "window 1 of 10" }).waitFor();
  const clicked = Date.now();
  await page.locator("#play").click();
  await page.locator("#position", { hasText: "window 2 of 10" }).waitFor();
  assert.ok(Date.now() - clicked > 1900, "two seconds a window");
  await end();
  const lively = await look("curve");
  assert.ok(await lively.page.evaluate(() => document.getAnimations().length) > 0);
  await lively.end();
});

for (const name of ["curve", "plane", "summary", "side"]) {
  test(`${name} fits a screen of 360 pixels`, async () => {
    const { page, end } = await look(name, { width: 360, height: 740 });
    const [wide, all] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= all, `${wide} pixels`);
    for (const id of ["badge", "gauge", "status"]) assert.ok(await page.locator(`#${id}`).isVisible());
    // The badge and the gauge stay in sight.
    await page.mouse.wheel(0, 600);
    await page.waitForTimeout(100);
    for (const id of ["badge", "gauge"]) assert.ok((await page.locator(`#${id}`).boundingBox()).y >= 0);
    if (name === "summary") await page.waitForTimeout(500);
    await shoot(page, `${name}-narrow`);
    await end();
  });
}

for (const dark of [false, true]) {
  test(`text and marks stand out enough, ${dark ? "dark" : "light"}`, async () => {
    const { page, end } = await look(dark ? "plane" : "curve", { dark });
    const colours = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const names = ["paper", "ground", "ink", "soft", "accent", "curve", "beyond", "above", "below", "warn", "warn-ground", "bad", "bad-ground", "good", "hatch", "rim", "other-1", "other-2", "other-3"];
      return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    });
    const light = (hex) => {
      const [r, g, b] = hex.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
      const [x, y] = [light(colours[a]), light(colours[b])].sort((p, q) => q - p);
      return (x + 0.05) / (y + 0.05);
    };
    for (const [text, ground] of [["ink", "paper"], ["ink", "ground"], ["soft", "paper"], ["soft", "ground"], ["accent", "paper"], ["accent", "ground"], ["paper", "accent"], ["warn", "warn-ground"], ["warn", "paper"], ["ink", "warn-ground"], ["ink", "bad-ground"], ["bad", "bad-ground"], ["bad", "paper"], ["ink", "above"], ["ink", "below"]]) {
      assert.ok(contrast(text, ground) >= 4.5, `${text} on ${ground}: ${contrast(text, ground).toFixed(2)}`);
    }
    for (const [mark, ground] of [["curve", "paper"], ["beyond", "paper"], ["curve", "above"], ["curve", "below"], ["hatch", "paper"], ["good", "paper"], ["rim", "paper"], ["other-1", "paper"], ["other-2", "paper"], ["other-3", "paper"]]) {
      assert.ok(contrast(mark, ground) >= 3, `${mark} on ${ground}: ${contrast(mark, ground).toFixed(2)}`);
    }
    if (dark) await shoot(page, "plane-dark");
    await end();
  });
}

test("the dark page", async () => {
  for (const name of ["curve", "side", "summary"]) {
    const { page, end } = await look(name, { dark: true });
    await page.waitForTimeout(500);
    await shoot(page, `${name}-dark`);
    await end();
  }
});

test("names of keys and columns are text, whatever they hold", async () => {
  const harm = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>";
  const { page, problems, end } = await look("curve", {}, (one) => ({
    ...one, key: `${harm}${one.key}`, pipeline: harm, domain: [{ ...one.domain[0], column: `=${harm}` }], meaning: harm,
    not_protected: [harm], privacy: { ...one.privacy, in_words: harm },
  }));
  await page.check("#table-switch");
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  assert.ok((await page.locator("#about").textContent()).includes(harm));
  assert.equal(await page.locator("main img, dialog img, main script, dialog script").count(), 0);
  assert.notEqual(await page.title(), "taken");
  assert.deepEqual(problems, []);
  await page.locator("#about-close").click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save-csv").click()]);
  assert.match(download.suggestedFilename(), /^[A-Za-z0-9._-]+\.csv$/);
  await end();
});

test("the drawer says all that the promise rests on, and never 'anonymous'", async () => {
  const { page, synopses, end } = await look("curve");
  await page.locator("#about-open").click();
  await page.locator("#about[open]").waitFor();
  const text = await page.locator("#about").textContent();
  for (const words of [synopses[0].privacy.in_words, "Whose privacy", "One record.", "What is hidden", "pure differential privacy", "Price of this window", "ε = 1", "ε 1 of 1, until 11 Jun 2013", "What is not protected", ...synopses[0].not_protected, "Laplace noise", "95\u00a0%", "Noise was added on purpose; differences smaller than the band are not evidence"]) {
    assert.ok(text.includes(words) || text.includes(words.replace("\u00a0", " ")), `${words} is not in: ${text}`);
  }
  await shoot(page, "about", false);
  await page.locator("#about-close").click();
  assert.doesNotMatch(await page.locator("html").evaluate((html) => html.outerHTML), /anonym/i);
  await end();
});

test("a choice stands in the address", async () => {
  const { page, server, end } = await look("curve");
  await page.locator("#key").selectOption({ label: "JFK" });
  await shown(page, (release, key) => key === "JFK");
  assert.match(page.url(), /#release=departure-delay&key=JFK$/);
  await page.goto("about:blank");
  await page.goto(`${server.address}#release=departure-delay&key=JFK`);
  await shown(page, (release, key) => key === "JFK");
  await end();
});

test("a key in the address waits for its first synopsis", async () => {
  const all = given("curve");
  const isWanted = ({ key }) => key === "JFK";
  const server = await serve(all.filter((one) => !isWanted(one)), { now: () => new Date(all.at(-1).published) });
  const { page, context } = await open(browser, `${server.address}#release=departure-delay&key=JFK`);
  assert.notEqual((await shown(page))[1], "JFK");
  all.filter(isWanted).forEach((synopsis) => server.publish(synopsis));
  await shown(page, (release, key) => key === "JFK");
  await context.close();
  await server.stop();
});
