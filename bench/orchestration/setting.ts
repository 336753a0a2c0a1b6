/** What the parts of `npm run bench -- orchestration` are measured on: a server that computes nothing, an engine on it, and a lesson. */
import type { ReinforcementStage } from "../../src/config/stage-options.ts";
import { reinforcementStageSchema } from "../../src/config/stage-options.ts";
import { Connection } from "../../src/engine/tinker/connection.ts";
import { Session } from "../../src/engine/tinker/session.ts";
import { TinkerEngine } from "../../src/engine/tinker/tinker-engine.ts";
import { tinkerOptionsSchema } from "../../src/engine/tinker/tinker-options.ts";
import { environmentOptionsSchema } from "../../src/environment/environment-options.ts";
import { RetrieverError } from "../../src/errors.ts";
import { scriptedRetriever } from "../../src/retrieval/scripted-retriever.ts";
import type { Fetch, NetworkWorld } from "../../src/shared/network-world.ts";
import { persistentFetch } from "../../src/shared/persistent-fetch.ts";
import { collectEarly } from "../../src/training/collect-early.ts";
import type { SamplingLesson } from "../../src/training/sample-groups.ts";
import { processWorld } from "../../src/training/world.ts";
import { Worker } from "../worker.ts";
import { byteTokenizer } from "./byte-tokenizer.ts";

export const groupSize = 8;

export interface There {
  readonly server: Worker;
  readonly engine: TinkerEngine;
  /** Bytes of all request bodies so far. */
  readonly sentBytes: () => number;
}

/** Runs a part against a server and an engine of its own, with at most `concurrency` samples at once. */
export async function onServer<T>(concurrency: number, work: (there: There) => Promise<T>): Promise<T> {
  collectEarly();
  const file = new URL("server.ts", import.meta.url).pathname;
  const server = new Worker(process.execPath, ["--import", "tsx", file]);
  try {
    const { url } = (await server.request("start")) as { readonly url: string };
    const counted = countingWorld();
    const options = tinkerOptionsSchema.parse({ type: "tinker", url, concurrency, rank: 8, backoffMs: 50 });
    const session = await Session.open(new Connection(options, counted.world), { seed: 1 });
    const engine = await TinkerEngine.create({
      session,
      tokenizer: byteTokenizer(),
      contextLength: 16_384,
      baseModel: "null",
      rank: 8,
      location: { base_model_name_or_path: "null", revision: null },
    });
    try {
      return await work({ server, engine, sentBytes: counted.sentBytes });
    } finally {
      await engine.close();
      await server.request("close");
    }
  } finally {
    server.close();
  }
}

function countingWorld(): { readonly world: NetworkWorld; readonly sentBytes: () => number } {
  let sent = 0;
  const ask = persistentFetch();
  const counted: Fetch = (url, init) => {
    sent += Buffer.byteLength(init.body ?? "");
    return ask(url, init);
  };
  return { world: { ...processWorld(), fetch: counted }, sentBytes: () => sent };
}

/** A stage whose steps have `episodes` episodes and are sampled one ahead. */
export function stageOf(episodes: number, changes: object = {}): ReinforcementStage {
  return reinforcementStageSchema.parse({
    type: "reinforcement",
    name: "grpo",
    steps: 1_000_000,
    questionsPerStep: Math.max(1, Math.round(episodes / groupSize)),
    schedule: { learningRate: 1e-6 },
    algorithm: { groupSize },
    maxStaleness: 1,
    ...changes,
  });
}

const passage = "A fact that is long enough to be a passage of a hundred words in bytes. ".repeat(4);

/** Questions with a retriever that answers at once, or fails every `failsEvery`-th search. */
export function lessonOf(engine: TinkerEngine, failsEvery = 0): SamplingLesson {
  let searches = 0;
  const train = Array.from({ length: 10_000 }, (_, i) => ({
    id: `${i}`,
    dataset: "bench",
    text: `is fact number ${i} true`,
    goldAnswers: ["yes"],
    goldPassages: [],
  }));
  const retriever = scriptedRetriever(() =>
    failsEvery > 0 && ++searches % failsEvery === 0
      ? new RetrieverError("injected")
      : [{ id: "p", title: "Fact", text: passage }],
  );
  const data = { train, evaluation: [], validation: [], split: "test", retriever, close: async () => {} };
  const environment = environmentOptionsSchema.parse({
    prompt: "bare",
    k: 1,
    maxSearches: 4,
    maxTurnTokens: 128,
    maxObservationTokens: 400,
  });
  return { engine, data, environment, seed: 3, now: () => performance.now() };
}
