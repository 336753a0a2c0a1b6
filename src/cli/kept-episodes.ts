/**
 * The episodes of an evaluation on disk, each written when it has ended, so that one that was interrupted goes on and one of
 * which some failed asks those alone again. A line holds the hash of what its episode depends on; the first evaluation with
 * another hash begins the file anew.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { ServedModel } from "../config/model-source-options.ts";
import { questionKey } from "../corpus/question.ts";
import type { KeptEpisodes } from "../evaluation/evaluate.ts";
import { appendJsonLines, readJsonLines, repairJsonLines, writeJsonLines } from "../reporting/json-lines.ts";
import { fromStored, storedTrajectorySchema, toStored } from "../reporting/trajectory-record.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { exists } from "../shared/files.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";

const lineSchema = z.object({
  setting: z.string(),
  episode: storedTrajectorySchema,
  /** Calls of a ranker, where there is one. */
  rankings: z.exactOptional(z.array(storedTrajectorySchema)),
});

export interface EpisodesFile extends KeptEpisodes {
  /** Waits until everything is on the disk. Throws `FileError`. */
  close(): Promise<void>;
  /** For an evaluation whose result is stored. */
  remove(): Promise<void>;
}

/**
 * The episodes in `file`, which need not exist, of a model that `model` names; they are those of its files as they are now.
 * Loading throws `FileError` and `DataFormatError`.
 */
export function episodesFile(file: string, model: string | ServedModel): EpisodesFile {
  let setting = "";
  let written: Promise<void> = Promise.resolve();
  return {
    load: async (asked) => {
      setting = sha256(canonicalJson([asked, await stampOf(model)]));
      await repairJsonLines(file);
      const lines = await readJsonLines(file, lineSchema);
      const own = lines.filter((line) => line.setting === setting);
      if (own.length < lines.length) await writeJsonLines(file, own);
      return new Map(own.map(fromLine).map((trajectory) => [questionKey(trajectory.question), trajectory]));
    },
    add: (trajectory) => {
      const line = toLine(setting, trajectory);
      written = written.then(() => appendJsonLines(file, [line]));
      // Told by `close`.
      written.catch(() => undefined);
    },
    close: async () => await written,
    remove: async () => await rm(file, { force: true }),
  };
}

/** Names, sizes and times of a model's files, or how a served one is asked; empty for a name that is no path. */
async function stampOf(model: string | ServedModel): Promise<readonly string[]> {
  if (typeof model !== "string") return [canonicalJson(askedHow(model))];
  if (!(await exists(model))) return [];
  const isFolder = (await stat(model)).isDirectory();
  const paths = isFolder ? (await readdir(model)).sort().map((name) => join(model, name)) : [model];
  const stamps = paths.map(async (path) => {
    const { size, mtimeMs } = await stat(path);
    return `${path} ${size} ${mtimeMs}`;
  });
  return await Promise.all(stamps);
}

/** What completions depend on: neither budget and price nor what is done about failures. */
function askedHow(model: ServedModel): unknown {
  if (model.type === "replay") return model;
  const {
    budget: _,
    price: __,
    retries: ___,
    backoffMs: ____,
    timeoutMs: _____,
    concurrency: ______,
    ...how
  } = model;
  return how;
}

/** `kept` whose loaded episodes are added to `finished`, as those that end now are by the evaluation. */
export function tellingOf(kept: KeptEpisodes, finished: Trajectory[]): KeptEpisodes {
  return {
    load: async (setting) => {
      const known = await kept.load(setting);
      finished.push(...known.values());
      return known;
    },
    add: kept.add,
  };
}

function toLine(setting: string, trajectory: Trajectory): z.infer<typeof lineSchema> {
  const stored = (each: Trajectory) => toStored({ stage: "", step: 0, trajectory: each });
  const { rankings } = trajectory;
  return { setting, episode: stored(trajectory), ...(rankings && { rankings: rankings.map(stored) }) };
}

function fromLine({ episode, rankings }: z.infer<typeof lineSchema>): Trajectory {
  return {
    ...fromStored(episode).trajectory,
    ...(rankings && { rankings: rankings.map((ranking) => fromStored(ranking).trajectory) }),
  };
}
