import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { archiveOf } from "./archive.ts";

test("an archive holds a checkpoint's files without the optimiser's state, as tar reads them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "forager-archive-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const large = Buffer.alloc(3 * 512 + 7, "x");
  await writeFile(join(folder, "adapter_config.json"), "{}");
  await writeFile(join(folder, "adapter_model.safetensors"), large);
  await writeFile(join(folder, "empty"), "");
  await writeFile(join(folder, "optimizer.json"), "{}");
  await writeFile(join(folder, "optimizer.safetensors"), "moments");
  const packed = Buffer.from(await new Response(await archiveOf(folder)).arrayBuffer());
  const path = join(folder, "packed.tar.gz");
  await writeFile(path, packed);
  const out = join(folder, "out");
  const listed = execFileSync("tar", ["-tzf", path], { encoding: "utf8" });
  expect(listed.trim().split("\n")).toEqual(["adapter_config.json", "adapter_model.safetensors", "empty"]);
  execFileSync("mkdir", [out]);
  execFileSync("tar", ["-xzf", path, "-C", out]);
  expect(await readFile(join(out, "adapter_model.safetensors"))).toEqual(large);
});
