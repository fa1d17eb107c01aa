// The package as npm packs and installs it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const home = fileURLToPath(new URL("..", import.meta.url));

test("what npm packs is installed and evaluates a synopsis", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "bernstream-pack-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const run = (program, ...given) => execFileSync(program, given, { cwd: folder, encoding: "utf8" });
  const [{ filename, files }] = JSON.parse(run("npm", "pack", home, "--json"));
  assert.deepEqual(files.map(({ path }) => path).sort(), ["README.md", "bernstream.d.ts", "bernstream.js", "curve.js", "package.json"]);
  run("npm", "install", "--offline", "--no-audit", "--no-fund", `./${filename}`);
  const golden = new URL("../../golden/density-1d.json", import.meta.url);
  const { synopsis, evaluations: [{ by, points, values }] } = JSON.parse(readFileSync(golden, "utf8"));
  const ask = `import { parse } from "bernstream"; console.log(parse(${JSON.stringify(synopsis)}).evaluate(${JSON.stringify(points[0])}, ${by}));`;
  assert.ok(Math.abs(Number(run(process.execPath, "--input-type=module", "-e", ask)) - values[0]) < 1e-9);
});
