/**
 * Search-R1 (arXiv 2503.09516, sections 4 and 5, appendices F to H) in miniature: reinforcement against its warm start and
 * against answering with one retrieval or none, and the paper's ablations. Equal trajectories a step everywhere.
 */
import type { Study, Variant } from "../study.ts";

/** Trajectories of one step. */
const perStep = 128;
const grpo = (name: string, ...overrides: string[]): Variant => ({
  name,
  recipe: "recipes/lab.yaml",
  overrides,
});
const ppo = (name: string, ...overrides: string[]): Variant => ({
  name,
  recipe: "recipes/lab-ppo.yaml",
  overrides,
});
const group = (size: number): string[] => [
  `stages.grpo.algorithm.groupSize=${size}`,
  `stages.grpo.questionsPerStep=${perStep / size}`,
  // A group of one has no other to be compared with.
  ...(size === 1 ? ["stages.grpo.algorithm.rejectGroupsWithoutSignal=false"] : []),
];

export const searchR1Study: Study = {
  name: "search-r1",
  title: "Search-R1 in miniature",
  variants: [
    grpo("grpo"),
    ppo("ppo"),
    { ...grpo("warm start"), supervisedOnly: true },
    { ...grpo("rag", "environment.mode=rag"), supervisedOnly: true },
    { ...grpo("direct", "environment.mode=direct"), supervisedOnly: true },
    grpo("r1, no search", "environment.mode=direct"),
    grpo("grpo, no mask", "stages.grpo.algorithm.maskRetrieved=false"),
    ppo("ppo, no mask", "stages.ppo.algorithm.maskRetrieved=false"),
    grpo("grpo, k 1", "environment.k=1"),
    grpo("grpo, k 5", "environment.k=5"),
    grpo("grpo, group 1", ...group(1)),
    grpo("grpo, group 4", ...group(4)),
    grpo("grpo, format reward", "stages.grpo.reward={ type: format }"),
  ],
  claims: [
    {
      text: "Reinforcement rises above its warm start",
      variant: "grpo",
      baseline: "warm start",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "… with PPO too",
      variant: "ppo",
      baseline: "warm start",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "Search-R1 is above RAG (Table 2: 0.431 to 0.304 at 7B)",
      variant: "grpo",
      baseline: "rag",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "… and above answering directly (0.181)",
      variant: "grpo",
      baseline: "direct",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "… and above reinforcement without search (R1, 0.276)",
      variant: "grpo",
      baseline: "r1, no search",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "The mask of retrieved tokens helps with PPO (Table 4: 0.431 to 0.343)",
      variant: "ppo",
      baseline: "ppo, no mask",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "… with GRPO (not in the paper)",
      variant: "grpo",
      baseline: "grpo, no mask",
      metric: "em",
      expect: { type: "none" },
    },
    {
      text: "PPO against GRPO (Table 3: higher at 7B base, lower in the other three)",
      variant: "ppo",
      baseline: "grpo",
      metric: "em",
      expect: { type: "none" },
    },
    {
      text: "k = 3 beats k = 1 (Table 7: 0.431 to 0.375)",
      variant: "grpo",
      baseline: "grpo, k 1",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "k = 3 beats k = 5 (Table 7: 0.431 to 0.400)",
      variant: "grpo",
      baseline: "grpo, k 5",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "A group of 1 ends above larger ones (Table 8: 0.410 to 0.350)",
      variant: "grpo, group 1",
      baseline: "grpo",
      metric: "em",
      expect: { type: "higher" },
    },
    {
      text: "The format reward raises exact match (2505.15117)",
      variant: "grpo, format reward",
      baseline: "grpo",
      metric: "em",
      expect: { type: "higher" },
    },
  ],
  metrics: [
    "em",
    "f1",
    "answerRetrieved",
    "searches",
    "anyDeficiency",
    "releasedAnyDeficiency",
    "policyTokens",
  ],
  small: ["stages.warm-up.steps=40", "stages.grpo.steps=2", "stages.ppo.steps=2", "evaluation.n=32"],
};
