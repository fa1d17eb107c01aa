// The package as npm packs and installs it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const home = fileURLToPath(new URL("..", import.meta.url));

/** The value of every golden synopsis that is a function, at its first point, by a module of the package. */
const EVALUATED = (module, folder) => `
  import { readdirSync, readFileSync } from "node:fs";
  import { parse } from "${module}";
  for (const name of readdirSync(${JSON.stringify(folder)}).filter((name) => name !== "wrong.json").sort()) {
    const { synopsis, evaluations, queries } = JSON.parse(readFileSync(${JSON.stringify(folder)} + name, "utf8"));
    const read = parse(synopsis);
    console.log(name, evaluations.map(({ by, points }) => read.evaluate(points[0], by)).join(" "), queries.length);
  }`;

test("what npm packs is installed and evaluates a synopsis", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "bernstream-pack-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const run = (program, ...given) => execFileSync(program, given, { cwd: folder, encoding: "utf8" });
  // Only who packs needs the minifier.
  if (!existsSync(join(home, "node_modules/esbuild"))) execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: home, stdio: "ignore" });
  const [{ filename, files }] = JSON.parse(run("npm", "pack", home, "--json"));
  assert.deepEqual(files.map(({ path }) => path).sort(), ["README.md", "bernstream.d.ts", "bernstream.js", "bernstream.min.js", "curve.js", "package.json"]);
  run("npm", "install", "--offline", "--no-audit", "--no-fund", `./${filename}`);
  const golden = new URL("../../golden/density-1d.json", import.meta.url);
  const { synopsis, evaluations: [{ by, points, values }] } = JSON.parse(readFileSync(golden, "utf8"));
  const ask = `import { parse } from "bernstream"; console.log(parse(${JSON.stringify(synopsis)}).evaluate(${JSON.stringify(points[0])}, ${by}));`;
  assert.ok(Math.abs(Number(run(process.execPath, "--input-type=module", "-e", ask)) - values[0]) < 1e-9);
  const cases = fileURLToPath(new URL("../../golden/", import.meta.url));
  const evaluated = (module) => run(process.execPath, "--input-type=module", "-e", EVALUATED(module, cases));
  const plain = evaluated("bernstream");
  assert.equal(plain.trim().split("\n").length, readdirSync(cases).length - 1);
  assert.equal(evaluated("bernstream/bernstream.min.js"), plain, "the minified module computes the same");
  const size = (name) => statSync(join(folder, "node_modules/bernstream", name)).size;
  assert.ok(size("bernstream.min.js") < 0.5 * size("bernstream.js"), `${size("bernstream.min.js")} bytes`);
});
