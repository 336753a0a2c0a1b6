/**
 * A measured side of a comparison: a child process that answers one JSON line to each JSON line. Both sides of a
 * bench are such processes, whatever their language, so that neither shares memory, threads or a garbage
 * collector with the other or with the bench, and rounds can alternate.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export type Answer = Readonly<Record<string, unknown>>;

/** The worker said that it could not do what was asked, or ended. */
export class WorkerError extends Error {}

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: WorkerError) => void;
}

export class Worker {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #name: string;
  #errors = "";
  #pending: Pending | undefined;
  /** Why the process is gone; absent while it lives. */
  #end: string | undefined;

  constructor(command: string, args: readonly string[]) {
    this.#name = [command, ...args].join(" ");
    this.#process = spawn(command, [...args], { stdio: "pipe" });
    this.#process.stderr.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2000);
    });
    this.#process.stdin.on("error", () => undefined); // a process that is gone is reported by its end
    this.#process.on("error", (error) => this.#finish(error.message));
    this.#process.on("close", (code, signal) => this.#finish(`ended with ${signal ?? `code ${code}`}`));
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#receive(line));
  }

  /** Sends one request and waits for its answer; one request at a time. Throws `WorkerError`. */
  request(operation: string, parameters: Answer = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      if (this.#end !== undefined) this.#finish(this.#end);
      else this.#process.stdin.write(`${JSON.stringify({ op: operation, ...parameters })}\n`);
    });
  }

  close(): void {
    this.#process.stdin.end();
    this.#process.kill();
  }

  /** Lines that are no JSON object are messages of libraries. */
  #receive(line: string): void {
    const pending = this.#pending;
    if (!line.startsWith("{") || pending === undefined) return;
    this.#pending = undefined;
    const answer = JSON.parse(line) as Answer;
    if (answer.ok === true) pending.resolve(answer);
    else pending.reject(new WorkerError(`${this.#name}: ${answer.error}`));
  }

  #finish(reason: string): void {
    this.#end ??= reason;
    const details = this.#errors === "" ? "" : `\n${this.#errors}`;
    this.#pending?.reject(new WorkerError(`${this.#name}: ${this.#end}${details}`));
    this.#pending = undefined;
  }
}
