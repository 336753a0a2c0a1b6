import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, FileError } from "../errors.ts";
import { downloadModel, isHubReference, parseHubReference } from "./hub.ts";
import { type Host, serve, startHost } from "./hub-server.fixture.ts";

const model = { repository: "owner/name", revision: "main" };

let scratch: string;
let hub: Host;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-hub-"));
  hub = await startHost();
});
afterEach(async () => {
  await hub.close();
  await rm(scratch, { recursive: true, force: true });
});

function get(files: readonly string[], endpoint = hub.address): Promise<string> {
  const wanted = files.map((file) => ({ anyOf: [file] }));
  return downloadModel(model, wanted, { endpoint, cacheFolder: scratch });
}

describe("a model", () => {
  test("is of one commit, also when the branch moves on", async () => {
    hub.handle = (request, response) => {
      response.setHeader("x-repo-commit", hub.seen.length === 1 ? "first" : "second");
      serve(response, request.headers.range);
    };
    const folder = await get(["a.json", "sub/b.json"]);
    await get(["c.json"]);
    expect(hub.seen.map(({ url }) => url.split("/resolve/")[1])).toEqual([
      "main/a.json",
      "first/sub/b.json",
      "first/c.json",
    ]);
    expect(JSON.parse(await readFile(join(folder, "download.json"), "utf8"))).toEqual({
      commit: "first",
      absent: [],
    });
  });

  test("may offer one of several files, and lack what is optional", async () => {
    hub.handle = (request, response) => {
      if (request.url?.endsWith("/onnx/model.onnx")) serve(response, undefined);
      else response.writeHead(404).end();
    };
    const options = { endpoint: hub.address, cacheFolder: scratch };
    const wanted = [
      { anyOf: ["model.onnx", "onnx/model.onnx"] },
      { anyOf: ["1_Pooling/config.json"], optional: true },
    ];
    const folder = await downloadModel(model, wanted, options);
    expect(existsSync(join(folder, "onnx", "model.onnx"))).toBe(true);
    const neither = downloadModel(model, [{ anyOf: ["a.onnx", "b.onnx"] }], options);
    await expect(neither).rejects.toThrow(/has none of a.onnx, b.onnx; check name and revision/);
    await expect(downloadModel(model, wanted, { ...options, offline: true })).resolves.toBe(folder);
    const offline = downloadModel(model, [{ anyOf: ["a.onnx"] }], { ...options, offline: true });
    await expect(offline).rejects.toThrow(FileError);
    await expect(offline).rejects.toThrow(/a.onnx is missing\) and downloads are switched off/);
  });

  test("is asked once for what it does not have", async () => {
    hub.handle = (request, response) => {
      response.setHeader("x-repo-commit", "first");
      if (request.url?.endsWith("/model.onnx")) serve(response, undefined);
      else response.writeHead(404).end();
    };
    const options = { endpoint: hub.address, cacheFolder: scratch };
    const wanted = [{ anyOf: ["model.onnx"] }, { anyOf: ["modules.json"], optional: true }];
    for (let i = 0; i < 3; i++) await downloadModel(model, wanted, options);
    expect(hub.seen).toHaveLength(2);
  });

  test("is named as hf:owner/name or with a revision, and nothing leads out of the cache", async () => {
    expect(parseHubReference("hf:BAAI/bge-small-en-v1.5")).toEqual({
      repository: "BAAI/bge-small-en-v1.5",
      revision: "main",
    });
    expect(parseHubReference("hf:a/b@refs/pr/1").revision).toBe("refs/pr/1");
    expect([isHubReference("hf:a/b"), isHubReference("./hf/a")]).toEqual([true, false]);
    for (const bad of [
      "hf:a",
      "hf:a/b/c",
      "hf:../b",
      "hf:a/..",
      "hf:a/b@",
      "hf:a/b@../../c",
      "hf:a/b@x//y",
      "hf:a b/c",
    ])
      expect(() => parseHubReference(bad)).toThrow(ConfigError);
    for (const bad of ["../x", "/etc/passwd", "a//b", "a/../../b", "C:\\x"])
      await expect(get([bad])).rejects.toThrow(/a path within the model/);
    await expect(get(["a.json"], "not a url")).rejects.toThrow(/must be a URL/);
    expect(hub.seen).toEqual([]);
  });
});
