import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { build } from "./build-killed.fixture.ts";
import { fakeEncoder } from "./fake-encoder.fixture.ts";

async function lines(path: string): Promise<number> {
  return existsSync(path) ? (await readFile(path, "utf8")).split("\n").length - 1 : 0;
}

test("a process that is killed while it encodes loses one part at most, and the end is the same", async () => {
  const scratch = await mkdtemp(join(tmpdir(), "forager-killed-"));
  try {
    const [whole, folder] = [join(scratch, "whole"), join(scratch, "killed")];
    await build(whole, fakeEncoder());
    const script = join(import.meta.dirname, "build-killed.fixture.ts");
    const journal = join(`${folder}.building`, "journal.jsonl");
    let safe = 0;
    for (const parts of [3, 9]) {
      const child = spawn(process.execPath, ["--import", "tsx", script, folder], { stdio: "ignore" });
      const ended = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
      while ((await lines(journal)) < parts) await sleep(5);
      child.kill("SIGKILL");
      expect(await ended).toBe("SIGKILL");
      safe = await lines(journal);
      expect(safe).toBeGreaterThanOrEqual(parts);
      expect(existsSync(folder)).toBe(false);
    }
    const encoder = fakeEncoder();
    await build(folder, encoder);
    expect(encoder.encoded.passages).toBe(400 - 16 * safe);
    for (const file of ["dense.json", "vectors.f16"])
      expect(await readFile(join(folder, file), "utf8")).toBe(await readFile(join(whole, file), "utf8"));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
});
