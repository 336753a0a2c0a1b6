/** Which trajectories go into the run folder: one group of each step, and all of an evaluation. */
import type { EvaluationResult } from "../evaluation/result.ts";
import type { RunPosition } from "../reporting/metric-row.ts";
import type { RunFolder } from "../reporting/run-folder.ts";
import { piecesOf, type TrajectoryRecord } from "../reporting/trajectory-record.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { ReinforcementResult } from "./reinforcement-step.ts";

/** Stores the first group of a step that taught something, else the first of all, under the stage's name. */
export async function storeSample(
  run: RunFolder,
  step: RunPosition & Pick<ReinforcementResult, "sampled" | "rankings"> & { readonly tokenizer: Tokenizer },
): Promise<void> {
  const { stage, sampled, rankings, tokenizer } = step;
  const chosen = sampled.find(({ advantage }) => advantage !== undefined && advantage !== 0) ?? sampled[0];
  const group = chosen?.trajectory.group;
  const recordsOf = (members: ReinforcementResult["sampled"], spells?: Tokenizer): TrajectoryRecord[] =>
    members
      .filter(({ trajectory }) => trajectory.group === group)
      .map(({ trajectory, reward, advantage }) => ({
        stage,
        // Sampled with the weights of before the step.
        step: step.step - 1,
        trajectory,
        ...(spells && { pieces: piecesOf(trajectory, spells) }),
        ...(reward !== undefined && { reward }),
        ...(advantage !== undefined && { advantage }),
      }));
  await run.appendTrajectories(stage, recordsOf(sampled, tokenizer));
  // A ranker may have another tokenizer, whose ids say nothing to the agent's.
  const calls = recordsOf(rankings);
  if (calls.length > 0) await run.appendTrajectories(rankingsName(stage), calls);
}

export interface StoredParts {
  /** After which step the evaluation was made. */
  readonly at: RunPosition;
  readonly result: EvaluationResult;
  readonly trajectories: readonly Trajectory[];
  /** Without one, records do not tell the text of each token. */
  readonly tokenizer: Tokenizer | undefined;
}

/** Stores an evaluation and all its trajectories under its name. */
export async function storeEvaluation(
  run: RunFolder,
  evaluation: StoredParts & { readonly name: string },
): Promise<void> {
  const { name, at, result } = evaluation;
  await run.writeTrajectories(name, evaluationRecords(evaluation));
  const calls = rankingRecords(evaluation);
  if (calls.length > 0) await run.writeTrajectories(rankingsName(name), calls);
  await run.writeEvaluation(name, result, at);
}

/** The file of a ranker's calls beside that of the agent's trajectories. */
export function rankingsName(name: string): string {
  return `${name}-rankings`;
}

/** The calls of the ranker in an evaluation as they are stored. */
export function rankingRecords({ at, trajectories }: StoredParts): TrajectoryRecord[] {
  return trajectories.flatMap(({ rankings = [] }) => rankings.map((trajectory) => ({ ...at, trajectory })));
}

/** The trajectories of an evaluation as they are stored, each with its scores. */
export function evaluationRecords({ at, result, trajectories, tokenizer }: StoredParts): TrajectoryRecord[] {
  return trajectories.map((trajectory, index) => {
    const item = result.items[index];
    const scores = item && "em" in item ? { em: item.em, f1: item.f1, coverEm: item.coverEm } : undefined;
    const pieces = tokenizer === undefined ? {} : { pieces: piecesOf(trajectory, tokenizer) };
    return { ...at, trajectory, ...pieces, ...(scores && { scores }) };
  });
}
