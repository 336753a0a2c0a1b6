/**
 * The one table of metric keys. A row of `metrics.jsonl` holds `stage`, `step` and any of these; a key that is
 * not listed here cannot be written (a type error, and a failure of the run folder). `docs/metrics.md` is made
 * from this table and checked by a test.
 *
 * What it does not hold: the scores of single questions, which live with their trajectories.
 */
import { type StopReason, stopReasons } from "../environment/stop-reason.ts";
import { type DeficiencyName, deficiencyDocs, deficiencyNames } from "../reward/deficiencies.ts";

export interface MetricDescription {
  /** Unit of the value; `share` is a fraction from 0 to 1, `nats` natural-log units. */
  readonly unit: string;
  readonly doc: string;
}

const described = {
  "reward/mean": [
    "points",
    "Mean reward of the trajectories sampled in this step, failures of infrastructure left out.",
  ],
  "reward/std": ["points", "Standard deviation of those rewards over all trajectories."],
  "reward/groupStd": [
    "points",
    "Mean over groups of the standard deviation within the group; 0 means no signal.",
  ],
  "reward/exactMatch": ["share", "Trajectories whose answer equals a gold answer after normalisation."],
  "reward/f1": ["share", "Mean token F1 between answer and best gold answer."],
  "advantage/std": [
    "points",
    "Standard deviation of the trajectories' advantages that were trained on; with a critic, of their means over tokens.",
  ],
  "search/count": ["searches/question", "Searches carried out in a trajectory, mean."],
  "search/invalid": ["share", "Turns whose text was no valid action, of all turns."],
  "search/repeated": [
    "share",
    "Searches whose query was asked before in the same trajectory, of all searches.",
  ],
  "search/goldRecall": [
    "share",
    "Gold passages found by any search of the trajectory, mean over questions that mark some.",
  ],
  "search/answerRecall": [
    "share",
    "Trajectories to which a search showed a passage with a gold answer, as whole words, yes and no left out.",
  ],
  "search/answerAccuracy": [
    "share",
    "Passages shown by searches that hold a gold answer, mean over trajectories; 0 without passages.",
  ],
  "search/truncated": ["share", "Observations that were shortened to fit their limit, of all observations."],
  "turn/count": ["turns/question", "Turns of the policy in a trajectory, mean."],
  "length/policyTokens": ["tokens", "Tokens sampled by the policy in a trajectory, mean."],
  "length/observationTokens": ["tokens", "Tokens of the environment after the prompt in a trajectory, mean."],
  "length/contextTokens": ["tokens", "All tokens of a trajectory, prompt included, mean."],
  "length/contextTokensMax": ["tokens", "All tokens of the longest trajectory."],
  "length/cutTurns": ["share", "Turns that reached the limit of tokens of one turn, of all turns."],
  "demonstration/count": ["count", "Demonstrations that the teacher gave for a supervised step."],
  "demonstration/dropped": [
    "count",
    "Questions of a supervised step that the teacher could not serve: gold passages not found, answer not shown, too long.",
  ],
  "loss/value": [
    "nats",
    "Loss per trained token: cross-entropy in supervised stages, the surrogate in RL stages.",
  ],
  "loss/tokens": ["tokens", "Tokens that carried loss in this step."],
  "loss/padding": ["share", "Padding among the tokens that were computed for the update, at most 0.15."],
  "loss/shared": [
    "share",
    "Tokens of an RL update that were computed once with those of another episode that begins alike.",
  ],
  "gradient/norm": [
    "1",
    "Euclidean norm of the gradient before clipping, mean over the updates of the step.",
  ],
  "optimizer/learningRate": ["1", "Learning rate of the last update."],
  "optimizer/updates": ["count", "Optimiser updates in this step."],
  "kl/sampling": [
    "nats",
    "KL divergence (k3) from the sampling policy to the current one per policy token, mean over the updates.",
  ],
  "kl/reference": [
    "nats",
    "KL divergence from the reference policy per policy token, with the recipe's estimator.",
  ],
  "clip/fraction": ["share", "Policy tokens whose probability ratio was clipped."],
  "critic/loss": [
    "points²",
    "Half the squared error of the critic's values, clipped as it is trained, mean over the updates.",
  ],
  "critic/explainedVariance": [
    "share",
    "Variance of the returns that the critic's values explain before the update: 1 all, 0 none, below 0 worse than a constant.",
  ],
  "critic/clipFraction": ["share", "Values whose clip left them no gradient."],
  "critic/valueMean": ["points", "Mean value of the trained states before the update."],
  "critic/returnMean": ["points", "Mean return of the same states."],
  "critic/gradientNorm": [
    "1",
    "Euclidean norm of the critic's gradient before clipping, mean over the updates; of its head where the trunk is shared.",
  ],
  "critic/learningRate": ["1", "Learning rate of the critic's last update."],
  "ratio/mean": ["1", "Mean probability ratio of current to sampling policy."],
  "ratio/max": ["1", "Largest probability ratio."],
  "entropy/sampled": [
    "nats",
    "Mean negative log-probability of the sampled tokens: a one-sample estimate of the entropy.",
  ],
  "group/count": ["count", "Groups sampled in this step."],
  "group/rejected": [
    "share",
    "Groups without signal (all rewards equal; in rejection sampling, none good enough), of all groups.",
  ],
  "group/failed": ["share", "Trajectories lost to a failure of retriever or policy, of all trajectories."],
  "group/retried": [
    "count",
    "Failures of retriever or policy after which an episode was played again, at most `episodeRetries` times each.",
  ],
  "engine/retries": [
    "count",
    "Calls of an engine elsewhere that were sent again after an error that passed, since the row before; with `engine.type: tinker` only.",
  ],
  "engine/polls": [
    "count",
    "Polls of an engine elsewhere that ended without a result, since the row before; with `engine.type: tinker` only.",
  ],
  "engine/resampled": [
    "count",
    "Samples that an engine elsewhere was asked for anew since it had lost their result, since the row before; with `engine.type: tinker` only.",
  ],
  "staleness/mean": [
    "steps",
    "Steps by which the weights that sampled were older than those that are trained, mean over sampled tokens; with `maxStaleness` only.",
  ],
  "staleness/max": ["steps", "The same of the oldest turn."],
  "staleness/klDivergence": [
    "nats",
    "Estimate (k3) of the divergence from the older weights that sampled to those before the update, per policy token; in steps that trained on older samples, in place of `parity/`.",
  ],
  "staleness/ratioMean": [
    "1",
    "Mean probability ratio of the weights before the update to those that sampled.",
  ],
  "staleness/ratioMax": ["1", "Largest such ratio."],
  "parity/maxLogprobDifference": [
    "nats",
    "Largest difference between the log-probability at sampling and in the training graph before the update.",
  ],
  "parity/klDivergence": [
    "nats",
    "Estimate (k3) of the divergence of the policy that sampled from the training graph before the update, per token; above rounding only with `engine.samplingWeights` other than f32, where more than 0.1 ends the training.",
  ],
  "time/rollout": [
    "s",
    "Wall time of sampling trajectories; where sampling runs ahead, of waiting for those of this step.",
  ],
  "time/policy": ["s", "Time waited for the policy, summed over trajectories."],
  "time/retrieval": ["s", "Time waited for the retriever, summed over trajectories."],
  "time/update": ["s", "Wall time of forward, backward and optimiser."],
  "time/evaluation": ["s", "Wall time of the evaluation after this step."],
  "time/step": ["s", "Wall time of the whole step, evaluation left out."],
  "rate/tokens": ["tokens/s", "Tokens through forward and backward by time of update."],
  "rate/sampledTokens": ["tokens/s", "Tokens sampled by the policy by time of rollout."],
  "rate/trajectories": ["trajectories/s", "Trajectories by time of rollout."],
  "memory/peakBytes": ["bytes", "Largest resident memory of the process so far."],
  "ranker/calls": ["calls/question", "Calls of the generative ranker in a trajectory, mean."],
  "ranker/failed": [
    "share",
    "Calls that gave no text: the ranker failed or the candidates did not fit; the retriever's best were shown.",
  ],
  "ranker/invalid": ["share", "Rankings that broke the grammar, of those that were written."],
  "ranker/answerable": ["share", "Calls of which a candidate holds a gold answer."],
  "ranker/reward": ["points", "Mean reward of the rankings that were written."],
  "ranker/relevance": ["share", "Mean relevance reward of the rankings whose candidates hold a gold answer."],
  "ranker/hit1": ["share", "Of these, calls after which the first passage shown holds a gold answer."],
  "ranker/hit3": ["share", "The same for one of the first three passages."],
  "ranker/hit5": ["share", "The same for one of the first five passages."],
  "ranker/illFormedAgents": ["share", "Rankings left out because the agent broke its format."],
  "ranker/ungrouped": [
    "share",
    "Other rankings left out: in a group too small, without signal, or over the cap.",
  ],
  "ranker/groups": ["count", "Groups of calls that the ranker was trained on."],
  "ranker/groupSize": ["calls", "Mean number of calls in them."],
  "ranker/promptTokens": ["tokens", "Tokens of the ranker's prompt, mean over calls."],
  "ranker/policyTokens": ["tokens", "Tokens that the ranker sampled, mean over calls."],
  "ranker/loss": ["nats", "Surrogate loss per trained token of the ranker with weights of its own."],
  "ranker/lossTokens": ["tokens", "Tokens that carried loss in its update."],
  "ranker/gradientNorm": ["1", "Euclidean norm of its gradient before clipping, mean over its updates."],
  "ranker/klSampling": ["nats", "As `kl/sampling`, of the ranker."],
  "ranker/klReference": ["nats", "As `kl/reference`, of the ranker."],
  "ranker/clipFraction": ["share", "As `clip/fraction`, of the ranker."],
  "ranker/ratioMax": ["1", "As `ratio/max`, of the ranker."],
  "ranker/entropy": ["nats", "As `entropy/sampled`, of the ranker."],
  "ranker/learningRate": ["1", "Learning rate of the ranker's last update."],
  "ranker/updates": ["count", "Optimiser updates of the ranker in this step."],
  "ranker/maxLogprobDifference": ["nats", "As `parity/maxLogprobDifference`, of the ranker."],
  "time/ranker": ["s", "Time waited for the ranker, summed over its calls."],
  "time/rankerUpdate": ["s", "Wall time of the ranker's own update."],
  "planner/score": ["share", "Answers of the generator that the judge takes for right."],
  "planner/judgeAgreement": [
    "share",
    "Judgements of a model that the rule shares, of those that could be read.",
  ],
  "planner/judgeUnreadable": ["share", "Judgements of a model that were neither yes nor no; they score 0."],
  "planner/gradeUnreadable": ["share", "Grades of searches that were no number from 1 to 5; they earn 0."],
  "planner/outcome": ["points", "Outcome part of the planner's reward (Eq. 2), mean."],
  "planner/process": ["points", "Process part (Eq. 3), 0 to 0.5, mean."],
  "planner/cost": ["points", "Cost part before alpha (Eq. 6), 0 to 2, mean."],
  "planner/format": ["points", "Format part (Eq. 8), -1 to 0, mean."],
  "planner/subQueries": ["queries/question", "Sub-queries searched in a trajectory, mean."],
  "planner/forcedCalls": [
    "share",
    "Trajectories whose generator was called because the rounds were used up.",
  ],
  "planner/generatorTokens": ["tokens", "Tokens that the generator read and wrote for a trajectory, mean."],
  "planner/judgeTokens": [
    "tokens",
    "Tokens of judging a trajectory, and of the generator's answers without a planner where they were new, mean.",
  ],
  "evaluation/n": ["count", "Questions of the evaluation after this step."],
  "evaluation/em": ["share", "Exact match on held-out questions, greedy decoding."],
  "evaluation/emLow": ["share", "Lower end of its 95 % bootstrap interval."],
  "evaluation/emHigh": ["share", "Upper end of its 95 % bootstrap interval."],
  "evaluation/f1": ["share", "Mean token F1 on held-out questions."],
  "evaluation/hit1": [
    "share",
    "Searches on held-out questions whose first passage shown holds a gold answer, mean over questions.",
  ],
  "evaluation/hit5": ["share", "The same for one of the first five passages."],
  "evaluation/score": ["share", "Held-out questions whose answer the planner's judge takes for right."],
  "evaluation/totalTokens": [
    "tokens",
    "Tokens that the agent wrote, and that a generator and a ranker read and wrote, mean over held-out questions.",
  ],
  "evaluation/searches": ["searches/question", "Mean searches on held-out questions."],
  "evaluation/answerRetrieved": ["share", "Held-out questions to which a search found a gold answer."],
  "evaluation/anyDeficiency": ["share", "Held-out questions with `deficiency/anyDeficiency`."],
  "validation/n": ["count", "Validation questions on which `until` of the stage measured after this step."],
  "validation/em": ["share", "Exact match on them."],
  "validation/f1": ["share", "Mean token F1 on them."],
  "validation/answerRetrieved": ["share", "Those to which a search found a gold answer."],
} as const satisfies Record<`${string}/${string}`, readonly [unit: string, doc: string]>;

const stopDocs: Readonly<Record<StopReason, string>> = {
  answer: "Trajectories that ended with an answer.",
  turnLimit: "Trajectories whose last turn brought no answer.",
  contextLimit: "Trajectories that did not fit into the context.",
  retrieverFailure: "Trajectories lost because the retriever failed.",
  policyFailure: "Trajectories lost because the policy could not be asked.",
  aborted: "Trajectories cut off by an interruption.",
};

export type StopMetricKey = `stop/${StopReason}`;
export type DeficiencyMetricKey = `deficiency/${DeficiencyName}`;
export type MetricKey = keyof typeof described | StopMetricKey | DeficiencyMetricKey;

/** Every key with its unit and meaning, in the order of the table. */
export const metricKeys: Readonly<Record<MetricKey, MetricDescription>> = Object.fromEntries([
  ...Object.entries(described).map(([key, [unit, doc]]) => [key, { unit, doc }]),
  ...stopReasons.map((reason) => [stopKey(reason), { unit: "share", doc: stopDocs[reason] }]),
  ...deficiencyNames.map((name) => [
    deficiencyKey(name),
    { unit: "share", doc: `Trajectories with ${deficiencyDocs[name]}.` },
  ]),
]) as Record<MetricKey, MetricDescription>;

/** The key of the share of trajectories that ended for `reason`. */
export function stopKey<R extends StopReason>(reason: R): `stop/${R}` {
  return `stop/${reason}`;
}

/** The key of the share of trajectories with a deficiency. */
export function deficiencyKey<N extends DeficiencyName>(name: N): `deficiency/${N}` {
  return `deficiency/${name}`;
}

export function isMetricKey(key: string): key is MetricKey {
  return Object.hasOwn(metricKeys, key);
}

/** The table as Markdown, which `docs/metrics.md` holds. */
export function metricsMarkdown(): string {
  const rows = Object.entries(metricKeys).map(([key, { unit, doc }]) => `| \`${key}\` | ${unit} | ${doc} |`);
  return [
    "# Metrics",
    "",
    "One JSON object a line in `metrics.jsonl`: `stage` (its name in the recipe), `step` (optimiser steps within",
    "the stage, from 1; 0 is before the first) and any of these keys. A value that is not a number is `null`.",
    "This file is made from `src/reporting/metric-keys.ts`.",
    "",
    "| key | unit | meaning |",
    "| --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}
