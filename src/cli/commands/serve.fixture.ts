/** For tests: `forager serve` in a made-up process, started and stopped by hand. */
import { EventEmitter } from "node:events";
import type { CommandIo } from "../command.ts";
import { parseCommand } from "../parse.ts";
import { type ServeHost, serveCommandOn } from "./serve.ts";

export interface Started {
  readonly ready: Readonly<Record<string, unknown>> & { readonly url: string };
  readonly notes: readonly string[];
  /** What the command returned or threw. */
  readonly end: Promise<unknown>;
  stop(name: "SIGINT" | "SIGTERM"): void;
}

/** Runs `forager serve` with these words until it says that it is ready. */
export async function startServe(
  env: Readonly<Record<string, string>>,
  ...argv: readonly string[]
): Promise<Started> {
  const signals = new EventEmitter();
  const controller = new AbortController();
  signals.on("SIGINT", () => controller.abort());
  signals.on("SIGTERM", () => controller.abort());
  const notes: string[] = [];
  return new Promise((resolve, reject) => {
    const write = (text: string): void => {
      const ready = JSON.parse(text) as Started["ready"];
      resolve({ ready, notes, end, stop: (name) => signals.emit(name) });
    };
    const host = Object.assign(signals, { env, stdout: { write } }) as unknown as ServeHost;
    const io = {
      note: (text: string) => notes.push(text),
      signal: controller.signal,
      now: () => new Date(),
    } as unknown as CommandIo;
    const command = serveCommandOn(host);
    const parsed = parseCommand(command, argv);
    const end = command.run(parsed, io).then(
      (result) => result,
      (error: unknown) => error,
    );
    end.then((result) => reject(result instanceof Error ? result : new Error("ended before it was ready")));
  });
}
