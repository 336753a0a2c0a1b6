import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FileError } from "../errors.ts";
import { inspectFolder, requireNewPath } from "./new-path.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-new-path-"));
  await writeFile(join(folder, "file"), "");
});
afterAll(() => rm(folder, { recursive: true }));

describe("a new path", () => {
  test("is fine where folders can be made, and nothing stays there from looking", async () => {
    await requireNewPath(join(folder, "one", "two"), "choose another");
    expect(await readdir(folder)).toEqual(["file"]);
  });

  test("that exists is refused with the caller's advice", async () => {
    const looking = requireNewPath(join(folder, "file"), "choose another");
    await expect(looking).rejects.toThrow(FileError);
    await expect(looking).rejects.toThrow(/file exists already; choose another/);
  });

  test("below a file is refused", async () => {
    await expect(requireNewPath(join(folder, "file", "below"), "")).rejects.toThrow(
      /is a file, not a folder/,
    );
  });

  test.runIf(existsSync("/proc/self"))("below a folder that takes nothing new is refused", async () => {
    expect(await inspectFolder("/proc/none/below")).toEqual({
      existing: "/proc",
      problem: "/proc takes nothing new",
    });
  });
});
