/**
 * `npm run bench -- NAME [options] [--json]`: runs one benchmark and prints a Markdown table; with `--json` the
 * last line of standard output is one JSON object with every round. Progress goes to standard error.
 */
import { cpus, loadavg, totalmem } from "node:os";
import { ablationsBench } from "./ablations.ts";
import type { Bench } from "./bench.ts";
import { denseBench } from "./dense.ts";
import { engineBench } from "./engine.ts";
import { grpoBench } from "./grpo.ts";
import { lanceBench } from "./lance.ts";
import { largeIndexBench } from "./large-index.ts";
import { lexicalBench } from "./lexical.ts";
import { formatBytes } from "./measure.ts";
import { orchestrationBench } from "./orchestration.ts";
import { planBench } from "./plan.ts";
import { quantisationBench } from "./quantisation.ts";
import { quickstartBench } from "./quickstart.ts";
import { retrievalBench } from "./retrieval.ts";
import { rolloutBench } from "./rollout.ts";
import { servingBench } from "./serving.ts";
import { stepBench } from "./step.ts";

const benches: readonly Bench[] = [
  ablationsBench,
  denseBench,
  engineBench,
  grpoBench,
  lanceBench,
  largeIndexBench,
  lexicalBench,
  orchestrationBench,
  planBench,
  quantisationBench,
  quickstartBench,
  retrievalBench,
  rolloutBench,
  servingBench,
  stepBench,
];

function usage(): string {
  const lines = benches.map(
    (bench) => `  ${bench.name.padEnd(13)} ${bench.about}\n                ${bench.options}`,
  );
  return `Usage: npm run bench -- NAME [options] [--json]\n\n${lines.join("\n")}\n`;
}

function describeMachine(): { readonly machine: string; readonly load: number; readonly date: string } {
  const processors = cpus();
  const machine = `${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}, ${formatBytes(totalmem())}, Node ${process.versions.node}`;
  return { machine, load: loadavg()[0] ?? 0, date: new Date().toISOString().slice(0, 10) };
}

async function main(argv: readonly string[]): Promise<number> {
  const json = argv.includes("--json");
  const [name, ...rest] = argv.filter((argument) => argument !== "--json");
  const bench = benches.find((candidate) => candidate.name === name);
  if (bench === undefined) {
    process.stderr.write(name === undefined ? usage() : `Unknown benchmark ${name}.\n\n${usage()}`);
    return 2;
  }
  const machine = describeMachine();
  const { markdown, data } = await bench.run(rest);
  const busy =
    machine.load > 0.5 ? ` (load ${machine.load.toFixed(1)} before the start: the machine was not idle)` : "";
  process.stdout.write(`${markdown}\n\n${machine.machine}, ${machine.date}${busy}\n`);
  if (json) process.stdout.write(`${JSON.stringify({ bench: bench.name, ...machine, ...data })}\n`);
  return 0;
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
