// The program itself: a worker that has released flights, its dashboard, and the demonstration.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "./browser.js";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** The program: `BERNSTREAM`, or what was built last; none where nothing was built. */
export const program = [process.env.BERNSTREAM, join(ROOT, "target/release/bernstream"), join(ROOT, "target/debug/bernstream")]
  .find((path) => path && existsSync(path));

export const freePort = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

/** Runs the program in the background until `stop`; its address answers when this is done. */
export async function background(args, address) {
  const child = spawn(program, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stdout.on("data", (text) => { said += text; });
  child.stderr.on("data", (text) => { said += text; });
  const ended = new Promise((done) => child.on("exit", done));
  await until("the program", async () => {
    if (child.exitCode !== null) throw new Error(`the program has ended: ${said}`);
    return fetch(address).then((response) => response.ok, () => false);
  }, () => said);
  return {
    address,
    stop: async (signal = "SIGTERM") => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
    },
  };
}

/** Runs a command of the program to its end. */
export function command(...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`bernstream ${args.join(" ")}: ${stdout}${stderr}`);
}

const CONFIGURATION = (folder) => `
pipeline = "flights"
input = { time = "time", key = { column = "origin", values = ["EWR", "JFK"] }, files = { path = "tests/data/flights.parquet" } }
windows = { origin = "2013-01-01T05:00:00Z", length = "28d", end = "2013-04-23T05:00:00Z" }
privacy = { unit = "record", adjacency = "add_remove", epsilon = 5.0 }
output = { files = { path = "${folder}/out" } }
ledger = { path = "${folder}/ledger" }
[[release]]
name = "delay"
epsilon = 1.0
degree = 20
order = 3
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }]
density = { bandwidths = [15] }
[[release]]
name = "delays"
epsilon = 1.0
degree = 8
order = 2
domain = [
    { column = "dep_delay", min = -30, max = 180, outside = "clamp" },
    { column = "arr_delay", min = -60, max = 180, outside = "clamp" },
]
density = { bandwidths = [30, 30] }
[[release]]
name = "kernels"
epsilon = 1.0
noise = "ball"
points = 12
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }]
density = { bandwidths = [15] }
[[release]]
name = "summary"
epsilon = 1.0
noise = "cube"
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }]
moments = { frequencies = 12 }
[[release]]
name = "counts"
epsilon = 1.0
counts = { of = ["records", "sum", "mean"], value = { column = "dep_delay", min = -30, max = 180, outside = "clamp" } }
`;

/** A folder of released flights, and how to be rid of it. */
export function released() {
  const folder = mkdtempSync(join(tmpdir(), "bernstream-page-"));
  writeFileSync(join(folder, "flights.toml"), CONFIGURATION(folder));
  const { status, stderr } = spawnSync(program, ["run", join(folder, "flights.toml")], { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`nothing was released: ${stderr}`);
  return { folder: join(folder, "out"), remove: () => rmSync(folder, { recursive: true }) };
}
