/**
 * The folder of one training run: all that is known about it, in files that a person can read.
 *
 *   recipe.yaml       the resolved recipe          checkpoints/<step>/    whole or absent, never partial
 *   contract.json     what the scores depend on    evaluation/<name>.json one result each
 *   metrics.jsonl     one row a step               report.html            written by `writeReport`
 *   trajectories/<name>.jsonl                      run.lock               the process that is writing
 *                                                  stopped.json           why it stopped by itself (`stop-record.ts`)
 *
 * A kill at any moment leaves every file whole, but for a torn last line of a `.jsonl` file, which readers skip
 * and the next writer cuts off. One process at a time writes a run; any number may read.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { assert, FileError } from "../errors.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import { createFolderAtomic, exists, writeFileAtomic } from "../shared/files.ts";
import {
  beyondNewest,
  type Checkpoint,
  keepNewestCheckpoints,
  listCheckpoints,
  listFolder,
  replaceCheckpoint,
} from "./checkpoint-folders.ts";
import {
  appendJsonLines,
  parseRecord,
  readJsonLines,
  readText,
  repairJsonLines,
  writeJsonLines,
} from "./json-lines.ts";
import {
  type MetricRow,
  metricRowSchema,
  type RunPosition,
  recordsUntil,
  stageOrder,
  toStoredRow,
} from "./metric-row.ts";
import { isLocked, lockRun, type RunLock } from "./run-lock.ts";
import { type StoredEvaluation, storedEvaluationSchema } from "./stored-evaluation.ts";
import { fromStored, storedTrajectorySchema, type TrajectoryRecord, toStored } from "./trajectory-record.ts";

export type { StoredEvaluation };

export interface RunContents {
  /** The resolved recipe as YAML text. */
  readonly recipeYaml: string;
  /** What the scores of this run depend on; any JSON object. */
  readonly contract: unknown;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

export class RunFolder {
  readonly path: string;
  readonly #lock: RunLock | undefined;
  readonly #repaired = new Set<string>();

  private constructor(path: string, lock: RunLock | undefined) {
    this.path = path;
    this.#lock = lock;
  }

  /** Makes a new run and locks it for writing. Throws `FileError` when `path` exists; what is there stays as it is. */
  static async create(path: string, contents: RunContents): Promise<RunFolder> {
    await createFolderAtomic(path, async (folder) => {
      await writeFile(join(folder, "recipe.yaml"), contents.recipeYaml);
      await writeFile(join(folder, "contract.json"), `${JSON.stringify(contents.contract, null, 2)}\n`);
      for (const name of ["trajectories", "checkpoints", "evaluation"]) await mkdir(join(folder, name));
    });
    return new RunFolder(path, await lockRun(path));
  }

  /** Opens a run for reading; needs no lock. Throws `FileError` when `path` holds no run. */
  static async open(path: string): Promise<RunFolder> {
    await requireRun(path);
    return new RunFolder(path, undefined);
  }

  /** Opens a run to go on writing it. Throws `FileError` when there is none or another process writes it. */
  static async resume(path: string): Promise<RunFolder> {
    await requireRun(path);
    return new RunFolder(path, await lockRun(path));
  }

  /** Whether a process goes on writing it. */
  isBeingWritten(): Promise<boolean> {
    return isLocked(this.path);
  }

  /** Gives the lock free; the folder can be read afterwards, not written. */
  async close(): Promise<void> {
    await this.#lock?.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get recipePath(): string {
    return join(this.path, "recipe.yaml");
  }

  get reportPath(): string {
    return join(this.path, "report.html");
  }

  readRecipe(): Promise<string> {
    return readText(this.recipePath);
  }

  async readContract(): Promise<unknown> {
    const path = join(this.path, "contract.json");
    return parseRecord(await readText(path), z.unknown(), { file: path });
  }

  /** Adds one row to `metrics.jsonl` with one write. Its keys must be in `metric-keys.ts`. */
  async appendMetrics(row: MetricRow): Promise<void> {
    await this.#append(this.#metricsPath, [toStoredRow(row)]);
  }

  /** Puts `row` in the place of the last one in one step: more became known about the step it is of. */
  async replaceLastMetrics(row: MetricRow): Promise<void> {
    this.#requireWritable();
    const rows = (await this.readMetrics()).slice(0, -1);
    await writeJsonLines(this.#metricsPath, [...rows, row].map(toStoredRow));
  }

  /** All rows in the order they were written. Throws `DataFormatError` with file and line. */
  readMetrics(): Promise<MetricRow[]> {
    return readJsonLines(this.#metricsPath, metricRowSchema);
  }

  /**
   * Drops metric rows and training trajectories past `position`, before a resumed run writes them anew. What an
   * evaluation left (trajectories of a name that has a result) stays: it is replaced as a whole or not at all.
   */
  async truncateAfter(position: RunPosition): Promise<void> {
    await this.truncateMetrics(position);
    const evaluated = new Set(await this.#names("evaluation", ".json"));
    for (const name of await this.trajectoryNames())
      if (!evaluated.has(name)) await this.truncateTrajectories(name, position);
  }

  /** Drops the metric rows past `position` in one step. */
  async truncateMetrics(position: RunPosition): Promise<void> {
    this.#requireWritable();
    const rows = await this.readMetrics();
    const kept = recordsUntil(rows, position, stageOrder(rows));
    await writeJsonLines(this.#metricsPath, kept.map(toStoredRow));
  }

  /** Adds trajectories to `trajectories/<name>.jsonl` with one write. */
  async appendTrajectories(name: string, records: readonly TrajectoryRecord[]): Promise<void> {
    await this.#append(this.#trajectoriesPath(name), records.map(toStored));
  }

  /**
   * Replaces `trajectories/<name>.jsonl` in one step: an evaluation that is done again leaves no duplicates. Like
   * `writeEvaluation` it needs no lock.
   */
  async writeTrajectories(name: string, records: readonly TrajectoryRecord[]): Promise<void> {
    await writeJsonLines(this.#trajectoriesPath(name), records.map(toStored));
  }

  /** All trajectories of `trajectories/<name>.jsonl`. Throws `DataFormatError` with file and line. */
  async readTrajectories(name: string): Promise<TrajectoryRecord[]> {
    return (await readJsonLines(this.#trajectoriesPath(name), storedTrajectorySchema)).map(fromStored);
  }

  /** Drops what was sampled at `position` or later, since the step that used it is done again. */
  async truncateTrajectories(name: string, position: RunPosition): Promise<void> {
    this.#requireWritable();
    const path = this.#trajectoriesPath(name);
    const records = await readJsonLines(path, storedTrajectorySchema);
    const lastSampled = { stage: position.stage, step: position.step - 1 };
    const kept = recordsUntil(records, lastSampled, stageOrder(await this.readMetrics()));
    if (kept.length < records.length) await writeJsonLines(path, kept);
  }

  /** Names for `readTrajectories`, sorted. */
  trajectoryNames(): Promise<string[]> {
    return this.#names("trajectories", ".jsonl");
  }

  /** Writes `evaluation/<name>.json`; `at` says after which step it was made. */
  async writeEvaluation(name: string, result: EvaluationResult, at: RunPosition): Promise<void> {
    requireName(name);
    const stored: StoredEvaluation = { name, stage: at.stage, step: at.step, result };
    await writeFileAtomic(
      join(this.path, "evaluation", `${name}.json`),
      `${JSON.stringify(stored, null, 2)}\n`,
    );
  }

  /** Every evaluation, sorted by name. Throws `DataFormatError`. */
  async readEvaluations(): Promise<StoredEvaluation[]> {
    const evaluations: StoredEvaluation[] = [];
    for (const name of await this.#names("evaluation", ".json")) {
      const path = join(this.path, "evaluation", `${name}.json`);
      evaluations.push(parseRecord(await readText(path), storedEvaluationSchema, { file: path }));
    }
    return evaluations;
  }

  /** Where the checkpoint of `step` lies or would lie. */
  checkpointFolder(step: number): string {
    return join(this.#checkpointsPath, String(step));
  }

  /**
   * Makes the checkpoint of `step`: `fill` writes into a temporary folder, which then appears as a whole under
   * `checkpoints/<step>`. An older checkpoint of that step is replaced.
   */
  async writeCheckpoint(step: number, fill: (folder: string) => Promise<void>): Promise<Checkpoint> {
    this.#requireWritable();
    return await replaceCheckpoint(this.#checkpointsPath, step, fill);
  }

  /** Whole checkpoints, oldest first. */
  checkpoints(): Promise<Checkpoint[]> {
    return listCheckpoints(this.#checkpointsPath);
  }

  /** The newest whole checkpoint, if there is one. */
  async latestCheckpoint(): Promise<Checkpoint | undefined> {
    return (await this.checkpoints()).at(-1);
  }

  /** Those that `pruneCheckpoints` would remove, oldest first. */
  prunableCheckpoints(keep: number, best: readonly number[] = []): Promise<Checkpoint[]> {
    return beyondNewest(this.#checkpointsPath, keep, best);
  }

  /** Removes all but the newest `keep` checkpoints (at least 1) and those of the steps `best`, and what a kill left half written. */
  async pruneCheckpoints(keep: number, best: readonly number[] = []): Promise<void> {
    this.#requireWritable();
    await keepNewestCheckpoints(this.#checkpointsPath, keep, best);
  }

  get #checkpointsPath(): string {
    return join(this.path, "checkpoints");
  }

  get #metricsPath(): string {
    return join(this.path, "metrics.jsonl");
  }

  #trajectoriesPath(name: string): string {
    requireName(name);
    return join(this.path, "trajectories", `${name}.jsonl`);
  }

  async #append(path: string, values: readonly unknown[]): Promise<void> {
    this.#requireWritable();
    if (!this.#repaired.has(path)) {
      await repairJsonLines(path);
      this.#repaired.add(path);
    }
    await appendJsonLines(path, values);
  }

  async #names(folder: string, ending: string): Promise<string[]> {
    const names = await listFolder(join(this.path, folder));
    return names
      .filter((name) => name.endsWith(ending) && !name.startsWith("."))
      .map((name) => basename(name, ending))
      .sort();
  }

  #requireWritable(): void {
    assert(this.#lock !== undefined, `${this.path} was opened for reading; use RunFolder.resume to write`);
  }
}

async function requireRun(path: string): Promise<void> {
  if (!(await exists(path))) throw new FileError(`there is no run at ${path}; check the path`);
  if (!(await exists(join(path, "recipe.yaml"))))
    throw new FileError(
      `${path} is no run folder: it holds no recipe.yaml; name a folder made by a training`,
    );
}

function requireName(name: string): void {
  assert(
    namePattern.test(name),
    `a name of letters, digits, dot, dash and underscore was expected, got "${name}"`,
  );
}
