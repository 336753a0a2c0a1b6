/** Where a new run goes, and how a training is run with the live view. */
import { join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import { resumeCommand } from "../training/go-on.ts";
import { type TrainingSummary, train } from "../training/train.ts";
import type { CommandIo } from "./command.ts";
import { liveView } from "./live-view.ts";
import { requireNewPath } from "./new-path.ts";
import { packageVersion } from "./package.ts";

/** `out`, or `runs/<name>-<date>-<time>`; nothing may be there yet. Throws `FileError`. */
export async function newRunFolder(name: string, out: string | undefined, now: Date): Promise<string> {
  const folder = out ?? join("runs", `${name}-${timeStamp(now)}`);
  await requireNewPath(folder, `choose another folder, or go on with: ${resumeCommand(folder)}`);
  return folder;
}

/** `2026-01-02-030405`, in local time. */
export function timeStamp(date: Date): string {
  const parts = [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(twoDigits);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits);
  return `${parts.join("-")}-${clock.join("")}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** Trains or resumes with progress on standard error. Throws what `train` throws. */
export async function trainWithView(
  task: { readonly recipe: Recipe; readonly folder: string; readonly resume: boolean },
  io: CommandIo,
): Promise<TrainingSummary> {
  const view = liveView(io);
  try {
    return await train({
      ...task,
      reporter: view,
      signal: io.signal,
      now: io.progress.now,
      codeVersion: packageVersion(),
    });
  } finally {
    view.end();
  }
}
