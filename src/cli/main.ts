#!/usr/bin/env node
/**
 * The `forager` program: joins `run` to the process. The first interrupt asks for a clean end (state saved where there
 * is any, exit code 130), the second one ends at once. A reader that goes away (`forager ... | head`) is no error.
 */
import { allowsColor } from "../reporting/transcript.ts";
import { interruptText } from "./interrupt-text.ts";
import { run } from "./run.ts";

const controller = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.on(name, () => {
    if (controller.signal.aborted) process.exit(130);
    process.stderr.write(`\n${interruptText(process.argv.slice(2))}\n`);
    controller.abort();
  });

for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });

process.exitCode = await run(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  signal: controller.signal,
  allowsColor: allowsColor(true, process.env.NO_COLOR),
  now: () => new Date(),
  clock: () => performance.now(),
});
