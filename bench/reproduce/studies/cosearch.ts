/**
 * CoSearch (arXiv 2604.17555, tables 2 and 3) in miniature: joint training of agent and ranker between retrieval alone and a
 * frozen ranker on one side and the oracle on the other, and the paper's ablations. Every variant starts from the same
 * agent and the same ranker, and differs in who ranks while reinforcement goes on.
 */
import type { Study, Variant } from "../study.ts";

const recipe = "recipes/lab-cosearch.yaml";
const start = "start";
/** The last stage of the recipe alone (`test/scripted-cosearch.test.ts` holds both together). */
export const jointStage = [
  "type: reinforcement",
  "name: joint",
  "steps: 100",
  "questionsPerStep: 16",
  "schedule: { learningRate: 4.0e-4, warmupSteps: 3, decay: { type: linear, minRatio: 0.1 } }",
  "algorithm: { groupSize: 8, minibatchSize: 64 }",
  "reward: { type: formatF1, format: actions }",
].join(", ");
const fromStart = [`stages=[{ ${jointStage} }]`, `model={checkpoint:${start}}`];
/** Without a ranker that learns. */
const plain = (name: string, ranker: string): Variant => ({
  name,
  recipe,
  overrides: [...fromStart, `ranker=${ranker}`],
});
const variant = (name: string, ...overrides: string[]): Variant => ({
  name,
  recipe,
  overrides: [...fromStart, `ranker.model={checkpoint:${start}}/ranker`, ...overrides],
});
const joint = "joint";
const fixed = "fixed ranker";
const oracle = "oracle";
const alone = "retrieval only";

export const cosearchStudy: Study = {
  name: "cosearch",
  title: "CoSearch in miniature",
  prepared: [{ name: start, recipe, overrides: [], supervisedOnly: true }],
  variants: [
    variant(joint),
    variant(fixed, "ranker.trainable=false"),
    plain(oracle, "{ type: oracle, candidates: 6 }"),
    plain(alone, "{ type: none }"),
    { name: start, recipe, overrides: [], supervisedOnly: true },
    variant("without r_main", "ranker.reward.combine=relevance"),
    variant("without r_rel", "ranker.reward.combine=answer"),
    variant("nDCG", "ranker.reward.relevance=ndcg"),
    variant("without grouping", "ranker.grouping={ type: off, answerability: false, minMembers: 1 }"),
    variant("exact grouping", "ranker.grouping.type=exact"),
    variant(
      "released reward",
      "ranker.reward.gamma=0.8",
      "ranker.reward.gammaIncluded=true",
      "ranker.reward.answerThreshold=0.8",
      "ranker.reward.keepIllFormedAgents=true",
      "ranker.grouping.minMembers=4",
      "ranker.averageDuplicates=true",
    ),
    variant("greedy ranker", "ranker.sampling.temperature=0"),
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
      text: "With nDCG it is lower (0.556)",
      variant: "nDCG",
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
    {
      text: "The reward as released, which the paper does not compare",
      variant: "released reward",
      baseline: joint,
      metric: "f1",
      expect: { type: "none" },
    },
    {
      text: "The ranker sampled greedily, as released in effect",
      variant: "greedy ranker",
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
