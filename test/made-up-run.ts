/**
 * A run folder with made-up numbers and trajectories, for tests of the report and for looking at it:
 *
 *   npx tsx test/made-up-run.ts FOLDER
 *
 * Nothing in it was measured. Some texts try to break out of the page.
 */
import { pathToFileURL } from "node:url";
import { summarize } from "../src/evaluation/aggregate.ts";
import type { EvaluationContract } from "../src/evaluation/contract.ts";
import type { EvaluationResult } from "../src/evaluation/result.ts";
import { scoreTrajectory } from "../src/evaluation/score-trajectory.ts";
import type { MetricRow } from "../src/reporting/metric-row.ts";
import { writeReport } from "../src/reporting/report/write-report.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import type { TrajectoryRecord } from "../src/reporting/trajectory-record.ts";
import type { Segment, Trajectory, Turn } from "../src/rollout/trajectory.ts";
import { type Random, random } from "../src/shared/random.ts";

/** What a hostile document may hold; it must show as text. */
export const hostileText =
  '</script><img src=x onerror="globalThis.broken=1"><svg onload=globalThis.broken=1>';

const steps = 40;
const questionCount = 96;

/** Makes the run and its report; `path` must not exist. Returns the path of the report. */
export async function makeUpRun(path: string): Promise<string> {
  await using run = await RunFolder.create(path, {
    recipeYaml: `name: made-up\nseed: 7\nstages:\n  - type: demonstrations # ${hostileText}\n    steps: 120\n  - type: reinforcement\n    steps: ${steps}\n`,
    contract,
  });
  for (const row of warmUpRows()) await run.appendMetrics(row);
  for (const row of trainingRows()) await run.appendMetrics(row);
  for (const [name, skill, step] of [
    ["before", 0.05, 0],
    ["grpo-20", 0.6, 20],
    ["after", 0.95, steps],
  ] as const) {
    const trajectories = Array.from({ length: questionCount }, (_, index) =>
      makeTrajectory(index, skill, "test"),
    );
    await run.writeEvaluation(name, resultOf(trajectories), { stage: "grpo", step });
    if (name !== "grpo-20")
      await run.writeTrajectories(
        name,
        trajectories.map((one) => record(one, step)),
      );
  }
  for (let step = 1; step <= steps; step += 4)
    await run.appendTrajectories(
      "grpo",
      Array.from({ length: 8 }, (_, sample) => {
        const trajectory = makeTrajectory(step * 8 + sample, step / steps, "train");
        const reward = trajectory.answer === trajectory.question.goldAnswers[0] ? 1 : 0;
        return { ...record(trajectory, step), reward, advantage: reward - step / steps };
      }),
    );
  return await writeReport(run);
}

const contract: EvaluationContract = {
  corpusHash: "made-up",
  retriever: { method: "bm25", indexHash: "made-up", parameters: { k1: 0.9, b: 0.4 } },
  k: 3,
  split: "test",
  n: questionCount,
  questionsHash: "made-up",
  promptHash: "made-up",
  templateHash: "made-up",
  codec: "search-r1",
  limits: { maxSearches: 4 },
  normaliser: "squad",
  judge: "exactMatch",
  sampling: { temperature: 0, topP: 1, topK: 0 },
  model: { type: "scripted", model: "made-up" },
  codeVersion: "0.0.0",
  seed: 7,
};

function warmUpRows(): MetricRow[] {
  const chance = random(7, "warm-up");
  return Array.from({ length: 120 }, (_, index) => ({
    stage: "demonstrations",
    step: index + 1,
    "loss/value": 4.2 * Math.exp(-index / 30) + 0.35 + 0.05 * chance.normal(),
    "gradient/norm": 2.5 * Math.exp(-index / 40) + 0.4 + 0.1 * chance.next(),
    "optimizer/learningRate": 0.003 * Math.min(1, (index + 1) / 12) * (1 - index / 160),
    "time/update": 0.4 + 0.05 * chance.next(),
    "time/step": 0.5,
  }));
}

function trainingRows(): MetricRow[] {
  const chance = random(7, "grpo");
  return Array.from({ length: steps }, (_, index): MetricRow => {
    const skill = 1 / (1 + Math.exp(-(index - 14) / 4));
    const answered = 0.9 + 0.09 * skill;
    return {
      stage: "grpo",
      step: index + 1,
      "reward/mean": 0.4 + 0.46 * skill + 0.05 * chance.normal(),
      "reward/std": 0.45 - 0.1 * skill,
      "search/count": 1.05 + 0.7 * skill + 0.05 * chance.normal(),
      "search/invalid": 0.06 * (1 - skill) + 0.01 * chance.next(),
      "stop/answer": answered,
      "stop/turnLimit": (1 - answered) * 0.7,
      "stop/contextLimit": (1 - answered) * 0.3,
      "length/policyTokens": 31 + 16 * skill + chance.normal(),
      "length/observationTokens": 92 + 60 * skill + 3 * chance.normal(),
      "length/contextTokens": 160 + 76 * skill + 3 * chance.normal(),
      "loss/value": -0.01 + 0.01 * chance.normal(),
      "gradient/norm": 0.6 + 0.2 * chance.next(),
      "optimizer/learningRate": 0.0003,
      "kl/sampling": 0.002 + 0.002 * chance.next(),
      "kl/reference": 0.12 * skill + 0.005 * chance.next(),
      "clip/fraction": 0.02 + 0.02 * chance.next(),
      "entropy/sampled": 0.5 - 0.3 * skill + 0.02 * chance.next(),
      "group/rejected": 0.2 + 0.5 * skill + 0.05 * chance.next(),
      "time/rollout": 3.1 + 0.8 * skill + 0.3 * chance.next(),
      "time/update": 1.9 + 0.6 * skill + 0.1 * chance.next(),
      "time/step": 5.6 + 1.5 * skill + 0.1 * chance.next(),
    };
  });
}

function resultOf(trajectories: readonly Trajectory[]): EvaluationResult {
  const items = trajectories.map((trajectory) => scoreTrajectory(trajectory));
  return { contract, items, summary: summarize(items, { seed: 7 }) };
}

function record(trajectory: Trajectory, step: number): TrajectoryRecord {
  return { stage: "grpo", step, trajectory, pieces: trajectory.segments.map(piecesOfSegment) };
}

/** Words with the space before them stand for tokens. */
function piecesOfSegment({ source, text }: Segment): string[] {
  return source === "policy" ? (text.match(/\s*\S+|\s+$/g) ?? []) : [];
}

function makeTrajectory(index: number, skill: number, split: string): Trajectory {
  const chance = random(7, split, index, skill);
  const hops = 1 + (index % 2);
  const town = `${["Ost", "Lind", "Mar", "Vel"][index % 4]}${["burg", "haven", "ford"][index % 3]} ${index}`;
  const river = `River ${["Aln", "Bever", "Cole", "Dun", "Esk"][index % 5]}`;
  const isRight = chance.next() < (hops === 1 ? 0.85 + 0.15 * skill : skill);
  const answer = isRight ? river : `Mount ${index}`;
  const searches = hops === 2 && skill > 0.3 ? 2 : 1;
  const turns = Array.from(
    { length: searches },
    (_, turn): Turn => ({
      action: {
        type: "search",
        query: turn === 0 ? `birthplace of painter ${index}` : `river through ${town}`,
      },
      passages: [town, `Other ${index}`].map((title, rank) => ({
        passage: {
          id: `${index}-${turn}-${rank}`,
          title,
          text: `${title} is a town on the ${river}. ${index === 0 ? hostileText : "It has a market."}`,
        },
        score: 12.4 - 3 * rank,
      })),
    }),
  );
  const segments = [
    makeSegment(
      "prompt",
      `Answer the question. Search with <search>query</search>, answer with <answer>answer</answer>.\nQuestion: Which river flows through the birthplace of painter ${index}?\n`,
      chance,
    ),
    ...turns.flatMap((turn) => [
      makeSegment(
        "policy",
        `<think> I should look this up. </think> <search> ${turn.action.type === "search" ? turn.action.query : ""} </search>`,
        chance,
      ),
      makeSegment(
        "environment",
        `\n<information>${turn.passages?.map(({ passage }, rank) => `Doc ${rank + 1}(Title: "${passage.title}") ${passage.text}`).join("\n")}</information>\n`,
        chance,
      ),
    ]),
    makeSegment("policy", `<answer> ${answer} </answer>`, chance),
  ];
  return {
    question: {
      id: `${split}-${index}`,
      dataset: "made-up",
      text: `Which river flows through the birthplace of painter ${index}?`,
      goldAnswers: [river],
      goldPassages: [`${index}-${hops - 1}-0`],
      hops,
    },
    group: `made-up/${index}`,
    sample: 0,
    segments,
    turns: [...turns, { action: { type: "answer", answer } }],
    answer,
    stopReason: "answer",
    time: { policyMs: 120, retrievalMs: 3, totalMs: 130 },
  };
}

function makeSegment(source: Segment["source"], text: string, chance: Random): Segment {
  const tokens = (source === "policy" ? piecesOfSegment({ source, text, tokens: [] }) : text.split(" ")).map(
    (_, index) => index,
  );
  return {
    source,
    text,
    tokens,
    ...(source === "policy" && { logprobs: tokens.map(() => Math.log(1 - 0.9 * chance.next() ** 3)) }),
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  await makeUpRun(process.argv[2] ?? "made-up-run");
