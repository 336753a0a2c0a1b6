import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";

const golden = (path: string): string =>
  fileURLToPath(new URL(`../../../test/golden/${path}`, import.meta.url));

/** Serves a golden model, as a hub would under its address; `asked` notes the paths. */
function startHub(family: string, asked: string[]): Promise<Server> {
  const server = createServer(async (request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const name = path.split("/").at(-1) as string;
    const file = name.startsWith("tokenizer") ? `lora/qwen2/${name}` : `families/${family}/${name}`;
    const bytes = await readFile(golden(file)).catch(() => undefined);
    if (bytes === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "content-length": bytes.length }).end(bytes);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-models-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

describe("models info", () => {
  test("describes a GGUF file with its tokenizer", async () => {
    const { code, json } = await runForTest("models", "info", golden("gguf/qwen3.gguf"), "--json");
    expect(code).toBe(0);
    expect(json).toEqual({
      family: "qwen3",
      parameters: 32_896,
      vocabulary: 270,
      context: 64,
      dtype: "F16",
      tokenizer: "BPE",
      bytes: (await readFile(golden("gguf/qwen3.gguf"))).length,
    });
  });

  test("describes a folder of shards that has no tokenizer, and says so", async () => {
    const { code, json, stderr } = await runForTest("models", "info", golden("families/qwen2"), "--json");
    expect(code).toBe(0);
    expect(json).toMatchObject({ family: "qwen2", vocabulary: 61, dtype: "F16", tokenizer: null });
    expect(stderr).toContain("tokenizer.json");
  });

  test("names the file and what is wrong with it", async () => {
    const { code, stderr } = await runForTest("models", "info", golden("gguf/llama.json"));
    expect(code).toBe(1);
    expect(stderr).toContain("llama.json is no usable GGUF file: it does not start with GGUF");
  });

  test("of a model that was not fetched says how to get it", async () => {
    vi.stubEnv("FORAGER_CACHE", folder);
    const { code, stderr } = await runForTest("models", "info", "smollm2-135m");
    expect(code).toBe(1);
    expect(stderr).toMatch(/config\.json is missing.*download it first/);
  });
});

test("models list shows size, licence and memory of every known model", async () => {
  const { code, stdout } = await runForTest("models", "list");
  expect(code).toBe(0);
  expect(stdout).toMatch(/smollm2-135m +135 M +269 MB +1\.7 GB +\d+\.\d GB +Apache-2\.0/);
  const { json } = await runForTest("models", "list", "--json");
  const { models } = json as { models: readonly Record<string, unknown>[] };
  for (const model of models) expect(model.trainingBytes).toBeGreaterThan(model.samplingBytes as number);
});

describe("models pull", () => {
  test("fetches a model from the hub that HF_ENDPOINT names, into a folder that can be opened", async () => {
    const asked: string[] = [];
    const server = await startHub("qwen3", asked);
    try {
      vi.stubEnv("HF_ENDPOINT", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      vi.stubEnv("HF_TOKEN", "");
      vi.stubEnv("FORAGER_CACHE", join(folder, "cache"));
      const to = join(folder, "mine");
      const { code, json, stderr } = await runForTest(
        "models",
        "pull",
        "hf:owner/name@v2",
        "--to",
        to,
        "--json",
      );
      expect({ code, json }).toEqual({ code: 0, json: { model: "hf:owner/name@v2", path: to } });
      expect(stderr).toContain("fetching model-00001-of-00002.safetensors");
      expect(asked.every((path) => path.startsWith("/owner/name/resolve/v2/"))).toBe(true);
      expect((await readdir(to)).sort()).toEqual([
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
      ]);
      const again = await runForTest("models", "pull", "hf:owner/name@v2", "--to", to);
      expect(again.stderr).toContain("exists already");
    } finally {
      server.close();
    }
  });

  test("says so when what came is no model, and how to fetch it again", async () => {
    const page = "<html>Please log in</html>";
    const server = createServer(async (request, response) => {
      const name = request.url?.split("/").at(-1) as string;
      const path = golden(name.startsWith("tokenizer") ? `lora/qwen2/${name}` : `families/llama3/${name}`);
      response.end(name === "model.safetensors" ? page : await readFile(path).catch(() => page));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      vi.stubEnv("HF_ENDPOINT", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      vi.stubEnv("FORAGER_CACHE", folder);
      const { code, stderr } = await runForTest("models", "pull", "hf:owner/name");
      expect(code).toBe(1);
      expect(stderr).toMatch(/what came as hf:owner\/name cannot be used: .*model\.safetensors is no usable/);
      expect(stderr).toContain(`remove ${join(folder, "models", "owner", "name", "main")} first`);
    } finally {
      server.close();
    }
  });

  test("of something that is no model of a hub is a mistake of the command line", async () => {
    expect(await runForTest("models", "pull", "some/folder")).toMatchObject({ code: 2 });
    expect(await runForTest("models", "pull")).toMatchObject({ code: 2 });
    expect(await runForTest("models", "fetch", "x")).toMatchObject({ code: 2 });
    expect(await runForTest("models", "list", "x")).toMatchObject({ code: 2 });
    expect(await runForTest("models", "info", "x", "--to", "y")).toMatchObject({ code: 2 });
  });
});
