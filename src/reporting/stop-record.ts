/** Why a training stopped before its end, as a run folder keeps it: the report says it when the terminal is long gone. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { exists, writeFileAtomic } from "../shared/files.ts";
import { parseRecord, readText } from "./json-lines.ts";

const stopRecordSchema = z.strictObject({
  stage: z.string(),
  /** The step that was found bad, from 1. */
  step: z.int().min(1),
  /** A clause such as `the mean reward fell from 0.8 to 0.1 and stayed down`. */
  reason: z.string(),
  /** Folder of the last good checkpoint. */
  checkpoint: z.string(),
});

export type StopRecord = Readonly<z.infer<typeof stopRecordSchema>>;

const fileIn = (run: string): string => join(run, "stopped.json");

/** Keeps why the training of the run folder `run` stopped by itself; undefined when it goes on. Throws `FileError`. */
export async function writeStop(run: string, stop: StopRecord | undefined): Promise<void> {
  if (stop === undefined) await rm(fileIn(run), { force: true });
  else await writeFileAtomic(fileIn(run), `${JSON.stringify(stop, null, 2)}\n`);
}

/** Why the training stopped by itself, where it did. Throws `DataFormatError`. */
export async function readStop(run: string): Promise<StopRecord | undefined> {
  const file = fileIn(run);
  return (await exists(file)) ? parseRecord(await readText(file), stopRecordSchema, { file }) : undefined;
}
