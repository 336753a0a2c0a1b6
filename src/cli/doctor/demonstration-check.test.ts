/** Demonstrations that the doctor plays: how many, through which ranker, and until when. */
import { expect, test } from "vitest";
import { parseRecipe } from "../../config/load-recipe.ts";
import type { Engine } from "../../engine/engine.ts";
import { scriptedPolicy } from "../../rollout/scripted-policy.ts";
import { trainBytePair } from "../../tokenizer/byte-pair-training.ts";
import { loadData } from "../../training/setup.ts";
import type { Patient } from "./check.ts";
import { checkDemonstrations } from "./demonstration-check.ts";

const yaml = `
name: taught
data: { type: world, world: { name: lab } }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 4096, vocabularySize: 290 }
environment: { k: 2, maxTurnTokens: 200, maxObservationTokens: 400 }
stages:
  - { type: supervised, name: warm-up, steps: 1, batchSize: 2, schedule: { learningRate: 0.01 } }
`;
const engine = {
  tokenizer: trainBytePair([], { vocabularySize: 258, specialTokens: [] }),
  contextLength: 4096,
  policy: () => scriptedPolicy(() => ""),
} as unknown as Engine;

/** With the numbers of passages that the searches ask for. */
async function examined(more: string, change: Partial<Patient["data"]> = {}) {
  const recipe = parseRecipe(yaml + more, { file: "taught.yaml" });
  const data = await loadData(recipe);
  const asked: number[] = [];
  const retriever: typeof data.retriever = {
    identity: data.retriever.identity,
    retrieve: (queries, k, signal) => {
      asked.push(...queries.map(() => k));
      return data.retriever.retrieve(queries, k, signal);
    },
  };
  return { patient: { recipe, data: { ...data, retriever, ...change }, engine }, asked };
}

test("are few where each search may cost money", async () => {
  const near = await examined("");
  expect((await checkDemonstrations(near.patient, {}))?.detail).toContain("shows 64 of 64 questions");
  const far = await examined("", { passages: undefined });
  expect((await checkDemonstrations(far.patient, {}))?.detail).toContain("shows 8 of 8 questions");
  expect(far.asked.length).toBeLessThan(20);
});

test("are played through the ranker of the recipe", async () => {
  const { patient, asked } = await examined("ranker: { type: oracle, candidates: 7 }\n");
  expect(await checkDemonstrations(patient, {})).toMatchObject({ ok: true });
  expect(new Set(asked)).toEqual(new Set([7]));
});

test("stop when they are interrupted", async () => {
  const { patient } = await examined("");
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(checkDemonstrations(patient, { signal })).rejects.toThrow("enough");
});
