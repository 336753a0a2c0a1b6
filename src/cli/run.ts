/**
 * One command line from words to exit code, without touching the process, so that tests need no child process.
 * Exit codes: 0 fine, 1 failed, 2 bad usage or recipe, 130 interrupted.
 */
import { ForagerError } from "../errors.ts";
import { visibleText } from "../reporting/transcript.ts";
import type { CommandIo } from "./command.ts";
import { commands } from "./commands.ts";
import { commandHelp, overviewHelp } from "./help.ts";
import { packageVersion } from "./package.ts";
import { findCommand, parseCommand } from "./parse.ts";

export type ExitCode = 0 | 1 | 2 | 130;

export interface OutputStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The world around a command line. */
export interface Io {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly signal: AbortSignal;
  /** False where the user wants no colours; then terminals get none either. */
  readonly allowsColor: boolean;
  readonly now: () => Date;
  /** Milliseconds from any fixed start, for rates. */
  readonly clock: () => number;
}

/** Runs `forager ...argv`; never throws. */
export async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const [verb, ...rest] = argv;
  let wantsJson = rest.includes("--json");
  try {
    if (verb === undefined || verb === "--help" || verb === "-h" || verb === "help")
      return print(io, overviewHelp(commands, packageVersion()), verb === undefined ? 2 : 0);
    if (verb === "--version" || verb === "-V") return print(io, packageVersion(), 0);
    const command = findCommand(commands, verb);
    const parsed = parseCommand(command, rest);
    wantsJson = parsed.json;
    if (parsed.help) return print(io, commandHelp(command), 0);
    const result = await command.run(parsed, commandIo(io, parsed.json));
    if (parsed.json) io.stdout.write(`${JSON.stringify(result.json)}\n`);
    return result.exitCode ?? 0;
  } catch (error) {
    if (wantsJson) io.stdout.write(`${JSON.stringify({ error: errorJson(error) })}\n`);
    io.stderr.write(errorText(error));
    return exitCodeOf(error);
  }
}

function print(io: Io, text: string, code: ExitCode): ExitCode {
  (code === 0 ? io.stdout : io.stderr).write(`${text}\n`);
  return code;
}

function commandIo(io: Io, json: boolean): CommandIo {
  const { stdout, stderr } = io;
  return {
    json,
    color: io.allowsColor && stdout.isTTY === true,
    noteColor: io.allowsColor && stderr.isTTY === true,
    signal: io.signal,
    now: io.now,
    print: (text) => {
      if (!json) stdout.write(`${text}\n`);
    },
    note: (text) => stderr.write(`${text}\n`),
    progress: {
      write: (text) => stderr.write(text),
      now: io.clock,
      isTerminal: stderr.isTTY === true,
      ...(stderr.columns !== undefined && { columns: stderr.columns }),
    },
  };
}

/** A known error is one line; anything else is a bug of ours and shows where it came from. */
function errorText(error: unknown): string {
  if (error instanceof ForagerError) return `forager: ${visibleText(error.message)}\n`;
  if (isAbort(error)) return "forager: interrupted\n";
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `${stack}\nforager: this is a bug in forager; please report it with the lines above and the command you ran\n`;
}

function errorJson(error: unknown): { readonly code: string; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof ForagerError) return { code: error.code, message };
  return { code: isAbort(error) ? "interrupted" : "bug", message };
}

function exitCodeOf(error: unknown): ExitCode {
  if (isAbort(error)) return 130;
  if (!(error instanceof ForagerError)) return 1;
  if (error.code === "interrupted") return 130;
  return error.code === "usage" || error.code === "config" ? 2 : 1;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
