/**
 * What an episode costs besides the model: the environment, retrieval and tokenisation of the `atlas` world, played by
 * a scripted policy that answers at once with the queries of a perfect searcher. Bounds the overhead of rollouts:
 * the time a real policy adds comes on top.
 */
import { performance } from "node:perf_hooks";
import type { Question } from "../src/corpus/question.ts";
import { makeWorld } from "../src/corpus/world.ts";
import type { Codec } from "../src/environment/action.ts";
import { findCodec } from "../src/environment/codecs.ts";
import { environmentOptionsSchema } from "../src/environment/environment-options.ts";
import { buildBm25Index } from "../src/retrieval/lexical/bm25.ts";
import type { Policy } from "../src/rollout/policy.ts";
import type { RolloutSetting } from "../src/rollout/rollout.ts";
import { runRollouts } from "../src/rollout/run-rollouts.ts";
import { scriptedPolicy } from "../src/rollout/scripted-policy.ts";
import { trainBytePair } from "../src/tokenizer/byte-pair-training.ts";
import type { Tokenizer } from "../src/tokenizer/tokenizer.ts";
import { type Bench, integerOptions } from "./bench.ts";
import { formatSummary, markdownTable, summarise } from "./measure.ts";

interface Round {
  readonly turnsPerSecond: number;
  readonly episodesPerSecond: number;
}

export const rolloutBench: Bench = {
  name: "rollout",
  about: "turns/s of environment, retrieval and tokenizer with a policy that answers at once",
  options: "[--rounds 5] [--episodes 2000]",
  async run(args) {
    const { rounds, episodes } = integerOptions(args, { rounds: 5, episodes: 2000 });
    const prepared = await prepare();
    const measured: Round[] = [];
    for (let round = 0; round <= rounds; round++) {
      const result = await playRound(prepared, episodes);
      if (round > 0) measured.push(result); // the first warms up
    }
    const row = (name: string, of: (round: Round) => number): string[] => [
      name,
      formatSummary(summarise(measured.map(of))),
    ];
    const markdown = markdownTable(
      ["rollout overhead", "median (min-max)"],
      [
        row("turns/s", (round) => round.turnsPerSecond),
        row("episodes/s", (round) => round.episodesPerSecond),
      ],
    );
    return { markdown, data: { episodes, rounds: measured } };
  },
};

interface Prepared {
  readonly setting: Omit<RolloutSetting, "policy">;
  readonly tokenizer: Tokenizer;
  readonly questions: readonly Question[];
}

/** The atlas world with its index and a byte-pair tokenizer. */
async function prepare(): Promise<Prepared> {
  const world = await makeWorld({ name: "atlas" });
  const environment = environmentOptionsSchema.parse({
    codec: "compact",
    prompt: "bare",
    passageTemplate: "text",
  });
  const tokenizer = trainBytePair(
    world.passages.map((passage) => passage.text),
    { vocabularySize: 512, specialTokens: findCodec(environment.codec).tags },
  );
  const retriever = await buildBm25Index(world.passages);
  const sampling = { temperature: 0, topP: 1, topK: 0 };
  return {
    setting: { retriever, environment, sampling, tokenizer, contextLength: 2048 },
    tokenizer,
    questions: world.questions.train.filter((question) => question.plan !== undefined),
  };
}

async function playRound({ setting, tokenizer, questions }: Prepared, episodes: number): Promise<Round> {
  const requests = Array.from({ length: episodes }, (_, i) => {
    const question = questions[i % questions.length] as Question;
    return { question, group: question.id, sample: Math.floor(i / questions.length), seed: i };
  });
  const policy = planFollower(questions, findCodec(setting.environment.codec), tokenizer);
  const start = performance.now();
  const trajectories = await runRollouts(requests, { ...setting, policy }, { concurrency: 128 });
  const seconds = (performance.now() - start) / 1000;
  const turns = trajectories.reduce((sum, trajectory) => sum + trajectory.turns.length, 0);
  const planned = requests.reduce((sum, { question }) => sum + (question.plan?.length ?? 0) + 1, 0);
  if (turns !== planned || trajectories.some((trajectory) => trajectory.stopReason !== "answer"))
    throw new Error(`the scripted episodes took ${turns} turns where their plans have ${planned}`);
  return { turnsPerSecond: turns / seconds, episodesPerSecond: episodes / seconds };
}

/** Plays each question's plan and then its first gold answer; a new one for each round, since it counts turns. */
function planFollower(questions: readonly Question[], codec: Codec, tokenizer: Tokenizer): Policy {
  const byGroup = new Map(questions.map((question) => [question.id, question]));
  return scriptedPolicy((context, turn) => {
    const question = byGroup.get((context.episode ?? "").split("#")[0] ?? "");
    const query = question?.plan?.[turn];
    return query === undefined
      ? codec.render({ type: "answer", answer: question?.goldAnswers[0] ?? "unknown" })
      : codec.render({ type: "search", query });
  }, tokenizer);
}
