/**
 * CoSearch (arXiv 2604.17555, tables 2 and 3) in miniature: joint training of agent and ranker between retrieval alone and a
 * frozen ranker on one side and the oracle on the other, and the paper's ablations. Every variant starts from the same
 * agent, warmed up on what an oracle shows, and the same ranker, which three of four times was shown a random ranking, so that
 * it knows its grammar and ranks poorly, as an untrained language model would; they differ in who ranks while reinforcement
 * goes on. nDCG is not compared: of one passage that is shown it is Hit@1. The KL term is ours: the paper prints none, and
 * without one the ranker may stop trying a candidate before it has learnt when to choose it.
 */
import type { Study, Variant } from "../study.ts";

const recipe = "recipes/lab-cosearch.yaml";
/** The stages of the recipe (`test/scripted-cosearch.test.ts` holds both together); here each warm-up is a run of its own. */
export const stages = {
  ranker: [
    "type: supervised",
    "name: ranker-warm-up",
    "steps: 60",
    "batchSize: 32",
    "teacher: { type: ranking, randomShare: 0.75 }",
    "schedule: { learningRate: 4.0e-3, warmupSteps: 10, decay: { type: linear, minRatio: 0.1 } }",
    "optimizer: { beta2: 0.98 }",
  ].join(", "),
  agent: [
    "type: supervised",
    "name: warm-up",
    "steps: 200",
    "batchSize: 32",
    "schedule: { learningRate: 4.0e-3, warmupSteps: 30, decay: { type: linear, minRatio: 0.1 } }",
    "optimizer: { beta2: 0.98 }",
  ].join(", "),
  joint: [
    "type: reinforcement",
    "name: joint",
    "steps: 40",
    "questionsPerStep: 16",
    "schedule: { learningRate: 4.0e-4, warmupSteps: 3, decay: { type: linear, minRatio: 0.1 } }",
    "algorithm: { groupSize: 8, minibatchSize: 64, kl: { coefficient: 0.05 } }",
    "reward: { type: formatF1, format: actions }",
  ].join(", "),
};
const only = (stage: keyof typeof stages): string => `stages=[{ ${stages[stage]} }]`;
const oracleRanker = (candidates: number): string => `ranker={ type: oracle, candidates: ${candidates} }`;
const fromAgent = [only("joint"), "model={checkpoint:agent}"];
/** Without a ranker that learns. */
const plain = (name: string, ranker: string): Variant => ({
  name,
  recipe,
  overrides: [...fromAgent, ranker],
});
const variant = (name: string, ...overrides: string[]): Variant => ({
  name,
  recipe,
  overrides: [...fromAgent, "ranker.model={checkpoint:ranker}/ranker", ...overrides],
});
const joint = "joint";
const fixed = "fixed ranker";
const oracle = "oracle";
const alone = "retrieval only";

export const cosearchStudy: Study = {
  name: "cosearch",
  title: "CoSearch in miniature",
  prepared: [
    { name: "agent", recipe, overrides: [only("agent"), oracleRanker(12)], supervisedOnly: true },
    { name: "ranker", recipe, overrides: [only("ranker")], supervisedOnly: true },
  ],
  variants: [
    variant(joint),
    variant(fixed, "ranker.trainable=false"),
    plain(oracle, oracleRanker(4)),
    plain(alone, "ranker={ type: none }"),
    variant("without r_main", "ranker.reward.combine=relevance"),
    variant("without r_rel", "ranker.reward.combine=answer"),
    variant("without grouping", "ranker.grouping={ type: off, answerability: false, minMembers: 1 }"),
    variant("exact grouping", "ranker.grouping.type=exact"),
  ],
  claims: [
    {
      text: "The oracle is above a fixed ranker (Table 2: 0.626 to 0.553 at 7B)",
      variant: oracle,
      baseline: fixed,
      metric: "f1",
      expect: { type: "higher" },
    },
    {
      text: "A fixed ranker is above retrieval alone (0.553 to 0.546)",
      variant: fixed,
      baseline: alone,
      metric: "f1",
      expect: { type: "higher" },
    },
    {
      text: "Joint training is above a fixed ranker (0.568 to 0.553)",
      variant: joint,
      baseline: fixed,
      metric: "f1",
      expect: { type: "higher" },
    },
    {
      text: "It closes at least 30 % of the gap between a fixed ranker and the oracle (the paper's tables: 21 % of 0.073 at 7B)",
      variant: joint,
      baseline: fixed,
      metric: "f1",
      expect: { type: "gapShareAtLeast", least: 0.3, ceiling: oracle },
    },
    {
      text: "… and shows relevant passages more often (Figure 3)",
      variant: joint,
      baseline: fixed,
      metric: "hit1",
      expect: { type: "higher" },
    },
    {
      text: "Without the agent's reward it is lower (Table 3: 0.560 to 0.568)",
      variant: "without r_main",
      baseline: joint,
      metric: "f1",
      expect: { type: "lower" },
    },
    {
      text: "Without relevance it is lower (0.552)",
      variant: "without r_rel",
      baseline: joint,
      metric: "f1",
      expect: { type: "lower" },
    },
    {
      text: "Without grouping it is lower (0.549)",
      variant: "without grouping",
      baseline: joint,
      metric: "f1",
      expect: { type: "lower" },
    },
    {
      text: "Equal queries alone, a control of ours",
      variant: "exact grouping",
      baseline: joint,
      metric: "f1",
      expect: { type: "none" },
    },
  ],
  metrics: ["f1", "em", "hit1", "searches", "invalidRankings", "policyTokens", "rankerTokens"],
  small: [
    "stages.ranker-warm-up.steps=20",
    "stages.warm-up.steps=20",
    "stages.joint.steps=2",
    "evaluation.n=16",
  ],
};
