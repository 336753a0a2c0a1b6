/** Where `forager eval` puts a result, and how result and trajectories are written, also those of an evaluation that ended early. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { EvaluationResult } from "../evaluation/result.ts";
import { writeJsonLines } from "../reporting/json-lines.ts";
import { toStored } from "../reporting/trajectory-record.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { BudgetSpentError, budgetSpent } from "../shared/budget.ts";
import { exists, writeFileAtomic } from "../shared/files.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { evaluationRecords, rankingRecords, storeEvaluation } from "../training/store-trajectories.ts";
import type { CommandIo } from "./command.ts";
import { requireNewPath } from "./new-path.ts";
import { timeStamp } from "./new-run.ts";
import type { ModelSource } from "./open-model.ts";

export interface ResultFile {
  readonly path: string;
  /** Name within the run's `evaluation/`, where it goes there. */
  readonly name?: string;
}

/** Where the result goes, checked before hours of work. */
export async function resultFile(
  { run }: ModelSource,
  out: string | undefined,
  io: CommandIo,
): Promise<ResultFile | undefined> {
  if (out === undefined && run === undefined) return undefined;
  const name = `eval-${timeStamp(io.now())}`;
  const path = out ?? join((run as NonNullable<typeof run>).path, "evaluation", `${name}.json`);
  await requireNewPath(path, "choose another file with --out");
  if (out === undefined) return { path, name };
  // Trajectories beside kept episodes are of an evaluation that ended before its result was written.
  if (!(await exists(keptBeside(path))))
    await requireNewPath(trajectoriesBeside(path), "choose another file with --out");
  return { path };
}

function trajectoriesBeside(path: string): string {
  return `${path.replace(/\.json$/, "")}.trajectories.jsonl`;
}

/** Where the episodes of an evaluation are until its result is. */
export function keptBeside(path: string): string {
  return `${path.replace(/\.json$/, "")}.kept.jsonl`;
}

function unfinishedBeside(path: string): string {
  return trajectoriesBeside(path.replace(/\.json$/, ".unfinished"));
}

export interface Scored {
  readonly result: EvaluationResult;
  readonly trajectories: readonly Trajectory[];
  readonly tokenizer: Tokenizer | undefined;
}

/** The trajectories first: a result that is there has all of its own. */
export async function writeResult(
  { path, name }: ResultFile,
  { run, position: at = { stage: "", step: 0 } }: ModelSource,
  scored: Scored,
): Promise<void> {
  if (name !== undefined && run !== undefined) return await storeEvaluation(run, { ...scored, name, at });
  const records = [...evaluationRecords({ ...scored, at }), ...rankingRecords({ ...scored, at })].map(
    toStored,
  );
  await writeJsonLines(trajectoriesBeside(path), records);
  await writeFileAtomic(path, `${JSON.stringify(scored.result, null, 2)}\n`);
  await rm(unfinishedBeside(path), { force: true });
}

interface Unfinished {
  /** The trajectories that ended before the error. */
  readonly finished: readonly Trajectory[];
  readonly file: ResultFile | undefined;
  readonly name: string;
  /** Whether the same command goes on from here. */
  readonly isKept: boolean;
}

/** Writes the trajectories that a spent budget left behind, and says where; other errors are thrown as they are. */
export async function keepFinished(
  error: unknown,
  { finished, file, name, isKept }: Unfinished,
): Promise<never> {
  const spent = budgetSpent(error);
  if (spent === undefined) throw error;
  const done = `${spent.message}; ${finished.length} questions of ${name} were finished`;
  if (file === undefined)
    throw new BudgetSpentError(
      spent.code,
      `${done}; name a file with --out to keep their trajectories`,
      spent.spent,
    );
  const path = unfinishedBeside(file.path);
  const records = finished.map((trajectory) => toStored({ stage: "", step: 0, trajectory }));
  await writeJsonLines(path, records);
  const next = isKept ? "the same command goes on behind them" : "a command with --out could be gone on with";
  throw new BudgetSpentError(spent.code, `${done}, their trajectories are in ${path}; ${next}`, spent.spent);
}
