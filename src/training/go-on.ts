/** How a training that ended before its end goes on: said where it ended, since nobody remembers the flag then. */
import { EngineError, type EngineErrorKind, ForagerError } from "../errors.ts";
import { commandLine } from "../shared/shell-word.ts";

/** The command that goes on with the run in `folder`. */
export function resumeCommand(folder: string): string {
  return commandLine("train", "--resume", folder);
}

/** What the world can mend, after which the same run goes on; a collapse or a recipe that cannot work is not among it. */
const passing = new Set<ForagerError["code"]>(["file", "retriever", "policy", "engine"]);

/** What an engine would say again, however often the run goes on. */
const lasting = new Set<EngineErrorKind>(["unsupported", "rejected", "malformed"]);

/** Adds to an error that ended the training in `folder` how it goes on, where it does and the error does not say it. */
export function tellHowToGoOn(error: unknown, folder: string): unknown {
  if (error instanceof ForagerError && passes(error) && !error.message.includes("--resume"))
    error.message = `${error.message}; the run is kept and then goes on with: ${resumeCommand(folder)}`;
  return error;
}

function passes(error: ForagerError): boolean {
  return passing.has(error.code) && !(error instanceof EngineError && lasting.has(error.kind));
}
