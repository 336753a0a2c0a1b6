/**
 * The episodes of an evaluation on disk, each written when it has ended and once more when it is judged, so that one that was interrupted goes on and one of
 * which some failed asks those alone again. A line holds the hash of what its episode depends on; lines of another hash stay,
 * untouched, until the result is stored.
 */
import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { questionKey } from "../corpus/question.ts";
import { FileError } from "../errors.ts";
import type { KeptEpisodes } from "../evaluation/evaluate.ts";
import { appendJsonLines, readJsonLines, repairJsonLines } from "../reporting/json-lines.ts";
import { fromStored, storedTrajectorySchema, toStored } from "../reporting/trajectory-record.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { fileError, makeFolder } from "../shared/files.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";

const lineSchema = z.object({
  setting: z.string(),
  episode: storedTrajectorySchema,
  /** Calls of a ranker, where there is one. */
  rankings: z.exactOptional(z.array(storedTrajectorySchema)),
});
type Line = z.infer<typeof lineSchema>;

export interface EpisodesFile extends KeptEpisodes {
  /** Waits until everything is on the disk; what cannot be written is said alone, since no score depends on it. */
  close(): Promise<void>;
  /** For an evaluation whose result is stored. */
  remove(): Promise<void>;
}

/**
 * The episodes in `file`, which need not exist, nor its folder, of models with `stamp` (`modelStamp`). Loading throws
 * `FileError` and `DataFormatError`.
 */
export function episodesFile(
  file: string,
  { stamp, note }: { readonly stamp: string; readonly note: (text: string) => void },
): EpisodesFile {
  let setting = "";
  const unwritten: Line[] = [];
  let written: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    const count = unwritten.length;
    await appendJsonLines(file, unwritten.slice(0, count));
    unwritten.splice(0, count);
  };
  // What failed may have left half a line.
  const writeAgain = async (): Promise<void> => {
    await repairJsonLines(file);
    await write();
  };
  return {
    load: async (asked) => {
      setting = sha256(canonicalJson([asked, stamp]));
      await makeFolder(dirname(file)).catch((cause: unknown) => {
        throw fileError(`cannot write ${file}`, cause);
      });
      await repairJsonLines(file);
      const lines = await readJsonLines(file, lineSchema);
      const own = lines.filter((line) => line.setting === setting);
      if (own.length < lines.length) note(passedOver(file, episodeCount(lines) - episodeCount(own)));
      return new Map(own.map(fromLine).map((trajectory) => [questionKey(trajectory.question), trajectory]));
    },
    add: (trajectory) => {
      unwritten.push(toLine(setting, trajectory));
      written = written.then(write, writeAgain);
      // Told by `close`.
      written.catch(() => undefined);
    },
    close: async () => {
      try {
        await written.catch(writeAgain);
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        note(
          `${episodeCount(unwritten) || "judged"} episodes are not kept for another call: ${error.message}`,
        );
      }
    },
    remove: async () => await rm(file, { force: true }),
  };
}

/** A judged episode has a line from before it was. */
function episodeCount(lines: readonly Line[]): number {
  return lines.filter(({ episode }) => episode.assessment === undefined).length;
}

function passedOver(file: string, count: number): string {
  return `${count} episodes in ${file} are of another recipe, other data, models or version and are not taken; they are removed when this result is written, stop now and choose another place to keep them`;
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

function toLine(setting: string, trajectory: Trajectory): Line {
  const stored = (each: Trajectory) => toStored({ stage: "", step: 0, trajectory: each });
  const { rankings } = trajectory;
  return { setting, episode: stored(trajectory), ...(rankings && { rankings: rankings.map(stored) }) };
}

function fromLine({ episode, rankings }: Line): Trajectory {
  return {
    ...fromStored(episode).trajectory,
    ...(rankings && { rankings: rankings.map((ranking) => fromStored(ranking).trajectory) }),
  };
}
