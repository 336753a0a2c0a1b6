import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FileError } from "../errors.ts";
import { describeBaseModel, hashOfModel } from "./base-model.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-base-"));
  await writeFile(join(folder, "config.json"), "{}");
  await writeFile(join(folder, "model.safetensors"), "weights");
});
afterAll(() => rm(folder, { recursive: true }));

test("a fresh model has no identity but that it is fresh; a pretrained one its source and hash", async () => {
  expect(await describeBaseModel({ type: "fresh" } as never)).toEqual({ type: "fresh" });
  expect(await describeBaseModel({ type: "pretrained", source: folder })).toEqual({
    type: "pretrained",
    source: folder,
    hash: await hashOfModel(folder),
  });
  await expect(describeBaseModel({ type: "pretrained", source: join(folder, "no") })).rejects.toThrow(
    FileError,
  );
});

test("the hash is that of weights, configurations, tokenizer and chat template, whatever else lies beside them", async () => {
  const hash = await hashOfModel(folder);
  for (const name of ["README.md", "optimizer.safetensors", "optimizer.json", "download.json"])
    await writeFile(join(folder, name), "x");
  expect(await hashOfModel(folder)).toBe(hash);
  const hashes = [hash];
  for (const name of [
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "adapter_config.json",
  ])
    for (const content of ["{}", "{ }"]) {
      await writeFile(join(folder, name), content);
      hashes.push(await hashOfModel(folder));
    }
  expect(new Set(hashes).size).toBe(9);
});

test("a single file is hashed with its name", async () => {
  const file = join(folder, "a.gguf");
  await writeFile(file, "weights");
  await copyFile(file, join(folder, "b.gguf"));
  expect(await hashOfModel(file)).not.toBe(await hashOfModel(join(folder, "b.gguf")));
  await expect(hashOfModel(join(folder, "no.gguf"))).rejects.toThrow(/cannot read the model/);
});
