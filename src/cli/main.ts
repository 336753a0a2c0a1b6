#!/usr/bin/env node
/**
 * The `forager` program: joins `run` to the process. The first interrupt asks for a clean end (state saved where there
 * is any, exit code 130), the second one ends at once. A reader that goes away (`forager ... | head`) is no error; a disk
 * that takes no output is one line.
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
    if (error.code === "EPIPE") process.exit(0);
    // Remarks that nobody can read are no reason to give up hours of work.
    if (stream === process.stderr) return;
    const reason = error.code === "ENOSPC" ? "the disk is full" : error.message;
    process.stderr.write(`forager: cannot write standard output: ${reason}\n`);
    process.exit(1);
  });

process.exitCode = await run(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  signal: controller.signal,
  allowsColor: allowsColor(true, process.env.NO_COLOR),
  now: () => new Date(),
  clock: () => performance.now(),
});
// What was given up may still be waited for by a library, as LanceDB waits for a server: that must not hold the process
// once a slow reader has all of the output.
setTimeout(() => {
  process.stdout.write("", () => process.stderr.write("", () => process.exit()));
}, 1000).unref();
