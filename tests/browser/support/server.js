// A server that speaks the dashboard's contract with given synopses: the page under test, and nothing of the worker.

import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { spendingOf } from "./spending.js";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PAGE = here("../../../crates/server/src/serve/page");
const MODULE = here("../../../clients/javascript/bernstream.js");
const KINDS = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The synopses of a file of fixtures, oldest first; or the one of a golden file. */
export function given(name) {
  const golden = here(`../../../clients/golden/${name}.json`);
  if (existsSync(golden)) return [JSON.parse(readFileSync(golden, "utf8")).synopsis];
  return readFileSync(here(`../fixtures/${name}.jsonl`), "utf8").trim().split("\n").map((text) => JSON.parse(text));
}

/** Questions that this server can answer, by their text: it has no language for them. */
const QUESTIONS = new Map([
  ["1", () => 1],
  ["dep_delay", (x) => x],
  ["exp(-((dep_delay - 40) / 40)^2)", (x) => Math.exp(-(((x - 40) / 40) ** 2))],
  ["(1 + tanh((dep_delay - 40) / 18)) / 2", (x) => (1 + Math.tanh((x - 40) / 18)) / 2],
]);

/**
 * Serves `synopses`. `now` is what the server takes for the time. `publish`, `unreadable` and `source` tell the page; `drop`
 * breaks its lines, `stop` ends the server, `start` begins anew on the same port.
 */
export async function serve(synopses, { now = () => new Date() } = {}) {
  const kept = [...synopses];
  const lines = new Set();
  let server;
  let port = 0;
  let isMute = false;
  let asked = 0;

  const send = (line, event, data, id) => line.write(`event: ${event}\n${id === undefined ? "" : `id: test-${id}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  const json = (response, status, body) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };
  const events = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(": hello\n\n");
    if (isMute) return;
    send(response, "hello", { now: now().toISOString(), version: "test", source: "folder tests/browser/fixtures", history: kept.length });
    kept.forEach((synopsis, i) => send(response, "synopsis", synopsis, i));
    lines.add(response);
    response.on("close", () => lines.delete(response));
  };
  const query = async (response, about) => {
    const { parse, SynopsisError } = await import(MODULE);
    const f = QUESTIONS.get(about.get("ask"));
    if (!f) return json(response, 400, { error: `column 1: the test server does not know '${about.get("ask")}'` });
    const found = kept.filter((one) => one.release === about.get("release") && (one.key ?? null) === about.get("key")
      && (!about.has("window") || one.window.start === about.get("window"))).pop();
    if (!found) return json(response, 404, { error: "there is no such window" });
    try {
      asked += 1;
      const synopsis = parse(found);
      const weights = synopsis.weights(f);
      const { sum, noise, truncation, mean } = synopsis.query(weights);
      return json(response, 200, { function: about.get("ask"), answer: { sum, noise: asRust(noise), truncation: ofRust(truncation), mean: mean && { value: mean.value, noise: asRust(mean.noise) } }, weights: [...weights.weights] });
    } catch (error) {
      return json(response, error instanceof SynopsisError ? 400 : 500, { error: error.message });
    }
  };
  const answer = (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://page");
    if (pathname === "/api/v1/events") return events(response);
    if (pathname === "/api/v1/spending") return json(response, 200, spendingOf(kept));
    if (pathname === "/api/v1/query") return query(response, searchParams);
    const file = pathname === "/bernstream.js" ? MODULE : join(PAGE, pathname === "/" ? "index.html" : pathname.slice(1));
    if (pathname.includes("..") || !existsSync(file)) return json(response, 404, { error: `there is no ${pathname}` });
    response.writeHead(200, { "content-type": `${KINDS[extname(file)]}; charset=utf-8`, "content-security-policy": POLICY });
    return createReadStream(file).pipe(response);
  };
  const start = () => new Promise((done) => {
    server = createServer(answer).listen(port, "127.0.0.1", () => {
      port = server.address().port;
      done();
    });
  });
  const all = (event, data, id) => lines.forEach((line) => send(line, event, data, id));

  await start();
  return {
    address: `http://127.0.0.1:${port}/`,
    publish: (synopsis) => all("synopsis", synopsis, kept.push(synopsis)),
    unreadable: (where, why) => all("unreadable", { where, why }),
    garbage: (text) => all("synopsis", text),
    source: (connected, why = null) => all("source", { connected, why }),
    /** How many queries were answered. */
    get asked() { return asked; },
    mute: (mute) => { isMute = mute; },
    start,
    stop: () => new Promise((done) => {
      lines.forEach((line) => line.destroy());
      server.close(done);
      server.closeAllConnections();
    }),
  };
}

const asRust = ({ deviation, halfWidth, level }) => ({ deviation, half_width: halfWidth, level: level ?? 0.95 });
const ofRust = (truncation) => ({
  per_record: truncation.perRecord ?? truncation.per_record, is_proved: truncation.isProved ?? false, records: truncation.records,
  error: truncation.error,
});
