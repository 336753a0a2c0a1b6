/**
 * A measured side of a comparison: a child process that answers one JSON line to each JSON line. Both sides of a
 * bench are such processes, whatever their language, so that neither shares memory, threads or a garbage
 * collector with the other or with the bench, and rounds can alternate.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface, type Interface } from "node:readline";

export type Answer = Readonly<Record<string, unknown>>;

/** The worker said that it could not do what was asked, or ended. */
export class WorkerError extends Error {}

export class Worker {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  readonly #name: string;
  #errors = "";

  constructor(command: string, args: readonly string[]) {
    this.#name = [command, ...args].join(" ");
    this.#process = spawn(command, [...args], { stdio: "pipe" });
    this.#process.stderr.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-2000);
    });
    this.#process.stdin.on("error", () => undefined); // a dead child is reported by the pending request
    this.#lines = createInterface({ input: this.#process.stdout });
  }

  /** Sends one request and waits for its answer; one request at a time. Throws `WorkerError`. */
  request(operation: string, parameters: Answer = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        stop();
        reject(new WorkerError(`${this.#name}: ${reason}${this.#errors === "" ? "" : `\n${this.#errors}`}`));
      };
      const onLine = (line: string): void => {
        if (!line.startsWith("{")) return;
        stop();
        const answer = JSON.parse(line) as Answer;
        if (answer.ok === true) resolve(answer);
        else reject(new WorkerError(String(answer.error)));
      };
      const onError = (error: Error): void => fail(error.message);
      const onExit = (code: number | null): void => fail(`ended with code ${code}`);
      const stop = (): void => {
        this.#lines.off("line", onLine);
        this.#process.off("error", onError).off("exit", onExit);
      };
      this.#lines.on("line", onLine);
      this.#process.on("error", onError).on("exit", onExit);
      this.#process.stdin.write(`${JSON.stringify({ op: operation, ...parameters })}\n`);
    });
  }

  close(): void {
    this.#process.removeAllListeners("exit");
    this.#process.stdin.end();
    this.#process.kill();
  }
}
