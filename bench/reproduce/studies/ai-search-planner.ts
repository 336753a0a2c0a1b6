/**
 * AI-SearchPlanner (arXiv 2508.20368) in miniature: alpha against searches and score, the planner against its frozen
 * generator's own RAG, another frozen generator in its place, and what is left without each part of the reward. Readers are
 * trained once, on the other half of the questions, and shared by all seeds.
 */
import type { Study, Variant } from "../study.ts";

const reader = "{checkpoint:reader@101}";
const planner = (name: string, ...overrides: string[]): Variant => ({
  name,
  recipe: "recipes/lab-planner.yaml",
  overrides: [`generator.model=${reader}`, ...overrides],
});
const withAlpha = (alpha: number): Variant => planner(`alpha ${alpha}`, `planner.alpha=${alpha}`);
const alphas = [0, 1, 2, 2.1, 2.2, 2.35, 3];
const base = withAlpha(0);

export const aiSearchPlannerStudy: Study = {
  name: "ai-search-planner",
  title: "AI-SearchPlanner in miniature",
  prepared: [
    { name: "reader", recipe: "recipes/lab-reader.yaml", overrides: [], supervisedOnly: true },
    {
      name: "reader 2",
      recipe: "recipes/lab-reader.yaml",
      overrides: ["model.layers=4", "model.width=48"],
      supervisedOnly: true,
    },
    base,
  ],
  variants: [
    base,
    ...alphas.slice(1).map(withAlpha),
    {
      ...planner("transfer to reader 2", "planner.alpha=0", "model={checkpoint:alpha 0}"),
      overrides: ["generator.model={checkpoint:reader 2@102}", "model={checkpoint:alpha 0}"],
      isUntrained: true,
    },
    planner("without outcome", "planner.outcome=none"),
    planner("without process", "planner.process=none"),
    planner(
      "alpha 1, divided by the deviation",
      "planner.alpha=1",
      "stages.plan.algorithm.advantage.normalize=std",
    ),
    { ...planner("warm start"), supervisedOnly: true },
  ],
  claims: [
    {
      text: "Planner and frozen generator beat the generator's own RAG (table 1: 0.597 to 0.539)",
      variant: "alpha 0",
      baseline: "alpha 0",
      metric: "score",
      baselineMetric: "ragScore",
      expect: { type: "higher" },
    },
    {
      text: "Reinforcement helps (table 4: 0.597 to 0.547 without)",
      variant: "alpha 0",
      baseline: "warm start",
      metric: "score",
      expect: { type: "higher" },
    },
    ...alphas.slice(1).map((alpha) => ({
      text: `Searches fall as alpha grows (table 3), alpha ${alpha}`,
      variant: `alpha ${alpha}`,
      baseline: "alpha 0",
      metric: "searches" as const,
      expect: { type: "lower" } as const,
    })),
    {
      text: "A little alpha costs no score (table 3: 0.599 at 0.05)",
      variant: "alpha 1",
      baseline: "alpha 0",
      metric: "score",
      expect: { type: "notLower" },
    },
    {
      text: "Much alpha costs score (table 3: 0.510 at 0.25)",
      variant: "alpha 3",
      baseline: "alpha 0",
      metric: "score",
      expect: { type: "lower" },
    },
    {
      text: "With another generator at least 70 % of the gain over RAG is kept (table 1)",
      variant: "transfer to reader 2",
      baseline: "alpha 0",
      metric: "ragGain",
      expect: { type: "ratioAtLeast", least: 0.7 },
    },
    {
      text: "Without the outcome reward the score falls (table 4: 0.506)",
      variant: "without outcome",
      baseline: "alpha 0",
      metric: "score",
      expect: { type: "lower" },
    },
    {
      text: "Without the process reward it falls a little (table 4: 0.588)",
      variant: "without process",
      baseline: "alpha 0",
      metric: "score",
      expect: { type: "none" },
    },
    {
      text: "Divided by the deviation, a small alpha counts as a large one (derived)",
      variant: "alpha 1, divided by the deviation",
      baseline: "alpha 1",
      metric: "searches",
      expect: { type: "lower" },
    },
  ],
  front: { utility: "score", cost: "searches", variants: alphas.map((alpha) => `alpha ${alpha}`) },
  metrics: [
    "score",
    "ragScore",
    "directScore",
    "ragGain",
    "searches",
    "subQueries",
    "forcedCall",
    "policyTokens",
    "totalTokens",
    "timeMs",
  ],
  small: [
    "stages.warm-up.steps=3",
    "stages.plan.steps=2",
    "stages.plan.questionsPerStep=2",
    "evaluation.n=8",
  ],
};
