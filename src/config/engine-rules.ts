/** What an engine elsewhere cannot do, as errors of a recipe before anything starts, each with its field. */
import type { z } from "zod";
import { klOf } from "../algorithm/options.ts";
import { type AdamField, type Profile, profiles } from "../engine/tinker/profiles.ts";
import type { TinkerOptions } from "../engine/tinker/tinker-options.ts";
import type { ReinforcementStage, Stage } from "./stage-options.ts";

/** What these rules look at. */
export interface CheckedEngine {
  readonly engine: { readonly type: "embedded"; readonly lora?: unknown } | TinkerOptions;
  readonly model: { readonly type: string };
  readonly ranker?: { readonly type: string; readonly weights?: string } | undefined;
  readonly stages: readonly Stage[];
}

type Path = readonly (string | number)[];
type Report = (path: Path, message: string) => void;

/** Adds an issue for every rule that is broken. */
export function checkEngine(
  { engine, model, ranker, stages }: CheckedEngine,
  context: z.core.$RefinementCtx,
): void {
  const report: Report = (path, message) => context.addIssue({ code: "custom", path: [...path], message });
  if (engine.type === "embedded") {
    if (model.type === "remote")
      report(
        ["model", "type"],
        "a remote model belongs to engine.type tinker; name a model that exists here",
      );
    return;
  }
  if (stages.length === 0 && model.type !== "remote") return;
  const profile = profiles[engine.profile];
  if (model.type === "fresh")
    report(
      ["model", "type"],
      "a fresh model is made in this process; with engine.type tinker name the one behind the server (type: remote), or one that exists, whose tokenizer is then used",
    );
  if (ranker?.type === "generative" && ranker.weights === "own")
    report(
      ["ranker", "weights"],
      "a ranker of its own is trained in this process; with engine.type tinker share the agent's (weights: shared)",
    );
  checkRank(engine, profile, report);
  for (const [index, stage] of stages.entries()) {
    checkOptimizer(stage, { engine, profile }, (path, message) =>
      report(["stages", index, ...path], message),
    );
    checkMoments(stage, { index, profile, report });
    if (stage.type === "reinforcement")
      checkReinforcement(stage, profile, (path, message) => report(["stages", index, ...path], message));
  }
}

function checkRank({ rank }: TinkerOptions, { ranks, title }: Profile, report: Report): void {
  if (rank === 0 && ranks === "lora")
    report(["engine", "rank"], `${title} trains adapters only; give a rank of 1 or more`);
  if (rank > 0 && ranks === "full")
    report(["engine", "rank"], `${title} trains all weights and no adapters; set rank to 0`);
}

const fields: readonly AdamField[] = ["beta1", "beta2", "epsilon", "weightDecay", "maxGradientNorm"];

/** A field that a call cannot set must be what the server was started with. */
function checkOptimizer(
  { optimizer }: Stage,
  { engine, profile }: { readonly engine: TinkerOptions; readonly profile: Profile },
  report: Report,
): void {
  for (const field of fields) {
    const wanted = optimizer[field];
    if (profile.adam.includes(field)) continue;
    if (profile.adamMissing.includes(field)) {
      if (wanted !== 0)
        report(["optimizer", field], `${profile.title} does not know it; set it to 0, which is off`);
      continue;
    }
    const there = engine.serverOptimizer?.[field];
    if (there === undefined)
      report(
        ["optimizer", field],
        `${profile.title} takes it from its own start-up configuration, not from a call; say there in engine.serverOptimizer.${field} what the server was started with`,
      );
    else if (there !== wanted)
      report(
        ["optimizer", field],
        `it is ${wanted}, and the server was started with ${there} (engine.serverOptimizer.${field}); make them equal`,
      );
  }
}

/** Later stages start with fresh moments, unless they carry them over. */
function checkMoments(
  stage: Stage,
  { index, profile, report }: { readonly index: number; readonly profile: Profile; readonly report: Report },
): void {
  if (index === 0 || profile.resetsOptimizer) return;
  if (stage.type === "reinforcement" && stage.carry.includes("optimizer")) return;
  report(
    ["stages", index, ...(stage.type === "reinforcement" ? ["carry"] : ["type"])],
    `${profile.title} cannot reset the optimiser between two stages; carry it over (carry: [optimizer], a reinforcement stage), or train one stage a run`,
  );
}

function checkReinforcement(
  { algorithm, sampling, maxStaleness }: ReinforcementStage,
  profile: Profile,
  report: Report,
): void {
  if (algorithm.type === "ppo")
    report(["algorithm", "type"], "an engine elsewhere has no critic; use grpo, or the embedded engine");
  else if (klOf(algorithm) !== undefined && profile.reference === "none")
    report(
      ["algorithm", "kl"],
      `${profile.title} has no frozen reference policy to compare with; leave kl out`,
    );
  if (maxStaleness > 0 && profile.name === "verl-tinker")
    report(
      ["maxStaleness"],
      `nothing is known of ${profile.title} sampling between a gradient and its step; leave it at 0`,
    );
  if (profile.sampledLogprobs === "raw") return;
  const plain = { temperature: 1, topP: 1, topK: 0 } as const;
  for (const field of ["temperature", "topP", "topK"] as const)
    if (sampling[field] !== plain[field])
      report(
        ["sampling", field],
        `${profile.title} tells log-probabilities of what it samples from, which are the policy's own only at ${plain[field]}; set it to that`,
      );
}
