import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeFileAtomic } from "../shared/files.ts";
import { RunFolder } from "./run-folder.ts";

const fullDevice = "/dev/full";

test.skipIf(!existsSync(fullDevice))(
  `a checkpoint that meets a full disk leaves the one before it whole (needs ${fullDevice})`,
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), "forager-full-"));
    onTestFinished(() => rm(scratch, { recursive: true, force: true }));
    const run = await RunFolder.create(join(scratch, "run"), { recipeYaml: "name: full\n", contract: {} });
    const save = (folder: string): Promise<void> => writeFileAtomic(join(folder, "weights"), "whole");
    await run.writeCheckpoint(1, save);
    const failing = run.writeCheckpoint(2, async (folder) => {
      await save(folder);
      // Written to in place: an atomic write would rename a file over the device.
      await writeFile(fullDevice, "x".repeat(1 << 16));
    });
    await expect(failing).rejects.toThrow(/ENOSPC|the disk is full/);
    expect(await run.latestCheckpoint()).toMatchObject({ step: 1 });
    expect(await readdir(run.checkpointFolder(1))).toContain("weights");
    expect((await readdir(join(run.path, "checkpoints"))).sort()).toEqual(["1"]);
    await run.close();
  },
);
