/**
 * DeSA (arXiv 2510.04695) in miniature: two stages against outcome alone, against what the paper tried instead, and
 * against the control that it leaves out, stage 1 on exact match too. All variants take equal steps, but
 * for the switch at the peak, which may take fewer.
 */
import type { Study, Variant } from "../study.ts";

const variant = (name: string, ...overrides: string[]): Variant => ({
  name,
  recipe: "recipes/lab-desa.yaml",
  overrides,
});
const both = (reward: string): string[] => [
  `stages.search.reward=${reward}`,
  `stages.answer.reward=${reward}`,
  // Optimiser, schedule and reference go on, so that two stages of one reward are one stage.
  "stages.answer.carry=[optimizer, schedule, reference]",
];
const mixture =
  "{ type: mixture, parts: [{ weight: 0.5, reward: { type: retrievalRecall } }, { weight: 0.5, reward: { type: exactMatch } }] }";

const outcome = "outcome only";

export const desaStudy: Study = {
  name: "desa",
  title: "DeSA in miniature",
  variants: [
    variant("desa"),
    variant(outcome, ...both("{ type: exactMatch }")),
    variant("control, exact match in stage 1", "stages.search.reward={ type: exactMatch }"),
    variant("recall only", ...both("{ type: retrievalRecall }")),
    variant("mixture 0.5", ...both(mixture)),
    variant("stage 1 accuracy", "stages.search.reward={ type: retrievalAccuracy }"),
    variant("stage 1 recall less flags", "stages.search.reward.deficiencyPenalty=0.2"),
    variant("switch at the peak", "stages.search.until={ everySteps: 2, patience: 3 }"),
    { ...variant("warm start"), supervisedOnly: true },
  ],
  claims: [
    {
      text: "DeSA halves the rate of any deficiency (23.36 to 6.96 %)",
      variant: "desa",
      baseline: outcome,
      metric: "anyDeficiency",
      expect: { type: "ratioAtMost", most: 0.5 },
    },
    {
      text: "… it lowers it at all",
      variant: "desa",
      baseline: outcome,
      metric: "anyDeficiency",
      expect: { type: "lower" },
    },
    {
      text: "Exact match is not lower (Table 2: +0.022 at 7B, +0.027 at 3B)",
      variant: "desa",
      baseline: outcome,
      metric: "em",
      expect: { type: "notLower" },
    },
    {
      text: "Exact match is higher",
      variant: "desa",
      baseline: outcome,
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "Searches recall the answer more often (abstract)",
      variant: "desa",
      baseline: outcome,
      metric: "answerRetrieved",
      expect: { type: "higher" },
    },
    {
      text: "Two stages beat one on half recall, half exact match (6.3.2)",
      variant: "desa",
      baseline: "mixture 0.5",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "Plain recall beats retrieval accuracy in stage 1 (6.3.1)",
      variant: "desa",
      baseline: "stage 1 accuracy",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "Plain recall beats recall less 0.2 a flag in stage 1 (6.3.1)",
      variant: "desa",
      baseline: "stage 1 recall less flags",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "It is recall, not the restart (control the paper leaves out)",
      variant: "desa",
      baseline: "control, exact match in stage 1",
      metric: "em",
      expect: { type: "none" },
    },
    {
      text: "A single stage on half recall, half exact match has more deficiencies too",
      variant: "desa",
      baseline: "mixture 0.5",
      metric: "anyDeficiency",
      expect: { type: "none" },
    },
  ],
  metrics: [
    "em",
    "f1",
    "answerRetrieved",
    "searches",
    "malformedAction",
    "duplicateQuery",
    "noSearch",
    "anyDeficiency",
    "releasedAnyDeficiency",
  ],
  small: [
    "stages.warm-up.steps=40",
    "stages.search.steps=2",
    "stages.answer.steps=2",
    "evaluation.n=32",
    "data.world.validationQuestions=16",
  ],
};
