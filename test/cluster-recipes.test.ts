/** What `recipes/cluster/` holds is tried as far as it goes without a cluster: read, resolved, and probed against our own server. */
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadRecipe } from "../src/config/load-recipe.ts";
import { tinyEngine } from "../src/engine/engine.fixture.ts";
import { runForTest } from "./run-cli.ts";
import { type ServedModel, serveModel } from "./served-model.ts";

const recipes = join(import.meta.dirname, "..", "recipes", "cluster");
const files = readdirSync(recipes).filter((file) => file.endsWith(".yaml"));

let folder: string;
let base: string;
const servers: ServedModel[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-cluster-"));
  base = join(folder, "base");
  // Wide enough for adapters of the recipes' rank.
  const engine = await tinyEngine({ model: { width: 32, heads: 2, keyValueHeads: 2, feedForward: 48 } });
  await engine.save(base);
  await engine.close();
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await rm(folder, { recursive: true, force: true });
});

describe.each(files)("recipes/cluster/%s", (file) => {
  const path = join(recipes, file);

  test("passes --dry-run", async () => {
    const { code, stdout } = await runForTest("train", path, "--dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain("type: tinker");
  });

  test("is planned: GPUs, hours and money, of a model whose name says how large it is", async () => {
    const { engine } = await loadRecipe(path);
    const sized = engine.type === "tinker" && engine.baseModel !== undefined;
    const flags = sized ? [] : ["--set", "engine.baseModel=Qwen/Qwen2.5-7B"];
    const { code, json } = await runForTest("plan", path, ...flags, "--gpus", "8", "--json");
    expect(code).toBe(0);
    expect(json).toMatchObject({ billions: 7, gpus: 8, stages: [{ name: "grpo" }] });
    const { hours, dollars } = json as { readonly hours: number[]; readonly dollars: number[] };
    expect(hours[0]).toBeGreaterThan(0);
    expect(hours[1]).toBeGreaterThanOrEqual(hours[0] as number);
    expect(dollars.map((value) => value / 24)).toEqual(hours.map((value) => expect.closeTo(value, 6)));
    const { rows } = json as { readonly rows: readonly { readonly source: string }[] };
    expect(rows.every(({ source }) => source.length > 20)).toBe(true);
  });

  test("passes the probe against our own server, which has its model's name", async () => {
    const { engine } = await loadRecipe(path);
    if (engine.type !== "tinker") throw new Error(`${file} trains in this process`);
    const { baseModel = "tiny", profile, rank } = engine;
    const server = await serveModel(base, folder, baseModel);
    servers.push(server);
    const flags = ["--profile", profile, "--base-model", baseModel, "--rank", String(rank)];
    const { code, json } = await runForTest("doctor", "--engine", server.url, ...flags, "--json");
    expect(json).toMatchObject({ ok: true, probe: { ok: true, reduction: "sum", problems: [] } });
    expect(code).toBe(0);
  });
});
