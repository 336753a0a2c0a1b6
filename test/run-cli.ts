/** Runs a command line in this process and gives back what it wrote; for tests alone. */
import { type ExitCode, run } from "../src/cli/run.ts";

export interface TestRun {
  readonly code: ExitCode;
  readonly stdout: string;
  readonly stderr: string;
  /** The last line of standard output, parsed; undefined when it is no JSON. */
  readonly json: unknown;
}

export async function runForTest(...argv: readonly string[]): Promise<TestRun> {
  return runWithSignal(new AbortController().signal, ...argv);
}

/** The same with a signal that the test may abort, as an interrupt would. */
export async function runWithSignal(signal: AbortSignal, ...argv: readonly string[]): Promise<TestRun> {
  let stdout = "";
  let stderr = "";
  const code = await run(argv, {
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    signal,
    allowsColor: false,
    now: () => new Date("2026-01-02T03:04:05Z"),
    clock: () => performance.now(),
  });
  return { code, stdout, stderr, json: parse(stdout.trimEnd().split("\n").at(-1) ?? "") };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
