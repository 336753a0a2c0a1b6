/**
 * The recipe of SmolLM2-135M over the real corpus: the prompt is what transformers' template gives, the teacher serves most
 * questions honestly, and the baselines of the same model are played. FORAGER_ASSETS names a folder that holds
 * SmolLM2-135M-Instruct/; without it or without ../shared these tests are skipped.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest } from "../run-cli.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const data = join(shared, "data");
const model = join(process.env.FORAGER_ASSETS ?? "", "SmolLM2-135M-Instruct");
const isThere =
  existsSync(join(data, "corpus.jsonl")) && process.env.FORAGER_ASSETS !== undefined && existsSync(model);
const recipe = join(import.meta.dirname, "../../recipes/smollm2-135m.yaml");
const title = isThere
  ? "recipes/smollm2-135m.yaml"
  : "recipes/smollm2-135m.yaml (skipped: ../shared and FORAGER_ASSETS are not both there)";

interface Stored {
  readonly question: { readonly id: string; readonly goldPassages: readonly string[] };
  readonly segments: readonly { readonly source: string; readonly text: string }[];
  readonly turns: readonly { readonly passages?: readonly { readonly id: string }[] }[];
  readonly stopReason: string;
}

describe.skipIf(!isThere)(title, () => {
  let folder: string;
  const at = (name: string): string => join(folder, name);
  const overrides = ["--set", `data.folder=${data}`, "--set", `model=${model}`];
  const stored = async (name: string): Promise<readonly Stored[]> =>
    (await readFile(at(name), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "forager-smollm-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("its teacher finds all gold passages of most questions, in episodes that fit", async () => {
    const args = ["--n", "200", "--show", "0", "--out", at("shown.jsonl"), "--json"];
    const { code, json } = await runForTest("demonstrate", recipe, ...overrides, ...args);
    expect(code).toBe(0);
    const { demonstrations, dropped } = json as {
      demonstrations: number;
      dropped: Readonly<Record<string, number>>;
    };
    expect(demonstrations).toBeGreaterThan(120);
    expect(demonstrations + Object.values(dropped).reduce((sum, count) => sum + count, 0)).toBe(200);
    for (const { question, segments, turns, stopReason } of await stored("shown.jsonl")) {
      const found = turns.flatMap(({ passages = [] }) => passages.map(({ id }) => id));
      expect(found).toEqual(expect.arrayContaining([...question.goldPassages]));
      expect(stopReason).toBe("answer");
      expect(segments[0]?.text).toMatch(
        /^<\|im_start\|>system\n.*<\|im_end\|>\n<\|im_start\|>user\nQuestion: .*\?\n<\|im_end\|>\n<\|im_start\|>assistant\n$/s,
      );
    }
  });

  test.each([
    ["direct", "{mode: direct, codec: plain, prompt: answer, maxTurnTokens: 16}", 0],
    ["rag", "{mode: rag, codec: plain, prompt: answer, maxTurnTokens: 16}", 1],
  ])("the same model is scored in mode %s", async (mode, environment, searches) => {
    const set = ["--set", `environment=${environment}`, "--set", "evaluation.n=7"];
    const { code, json } = await runForTest(
      "eval",
      recipe,
      ...overrides,
      ...set,
      "--out",
      at(`${mode}.json`),
      "--json",
    );
    expect(code).toBe(0);
    expect(json).toMatchObject({ n: 7, failed: 0, searches, contract: { limits: { mode } } });
    expect(await stored(`${mode}.trajectories.jsonl`)).toHaveLength(7);
  });
});
