/** Every example runs as its header says and prints what it promises. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const folder = import.meta.dirname;
const examples = (await readdir(folder)).filter((file) => !file.endsWith(".test.ts"));

/** What must stand in the output of each example. */
const promises: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  "own-documents.ts": [
    /^\d\.\d\d {2}Ada Lovelace\n/,
    "<information>Doc 1(Title: Charles Babbage) Charles Babbage was born in London in 1791.</information>",
    "answer   1791  reward 1",
  ],
};

async function run(file: string): Promise<string> {
  const command = ["--import", "tsx", join(folder, file)];
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: join(folder, "..") });
  return stdout;
}

test.each(examples)("%s says how it is run, and does what it promises", async (file) => {
  expect(await readFile(join(folder, file), "utf8")).toContain(`npx tsx examples/${file}`);
  const expected = promises[file] ?? expect.fail(`examples.test.ts does not say what ${file} prints`);
  const stdout = await run(file);
  for (const part of expected) expect(stdout).toMatch(part);
});
