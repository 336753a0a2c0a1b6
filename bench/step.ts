/**
 * Where the time of a real reinforcement step goes: a recipe is trained with V8's sampling profiler on during its
 * last stage. Samples on the main thread are added up by room; native code counts for the room that called it.
 * Evaluations and checkpoints are left out. Overhead is what is neither engine nor retrieval.
 */
import { mkdtemp, rm } from "node:fs/promises";
import inspector from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadRecipe } from "../src/config/load-recipe.ts";
import type { MetricRow } from "../src/reporting/metric-row.ts";
import { silentReporter } from "../src/training/reporter.ts";
import { train } from "../src/training/train.ts";
import type { Bench } from "./bench.ts";
import { markdownTable } from "./measure.ts";

/** Rooms whose time is the engine's or the retriever's. */
const working = new Set(["engine", "retrieval", "waiting"]);

export const stepBench: Bench = {
  name: "step",
  about: "share of a real training step outside engine and retriever, by room (CPU profile)",
  options: "[--recipe recipes/lab.yaml] [--seed 1] [--threads 2]",
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        recipe: { type: "string", default: "recipes/lab.yaml" },
        seed: { type: "string", default: "1" },
        threads: { type: "string", default: "2" },
      },
    });
    const { recipe, seed, threads } = values;
    const overrides = [`seed=${seed}`, `engine={ type: embedded, threads: ${threads} }`];
    const { milliseconds, rows } = await profiledStage(recipe, overrides);
    const total = [...milliseconds.values()].reduce((sum, value) => sum + value, 0);
    const share = (value: number): string => `${((100 * value) / total).toFixed(1)} %`;
    const byRoom = [...milliseconds].sort(([, a], [, b]) => b - a);
    const overhead = byRoom.reduce((sum, [room, value]) => sum + (working.has(room) ? 0 : value), 0);
    const markdown = markdownTable(
      ["room", "share of the stage", "ms a step"],
      [
        ...byRoom.map(([room, value]) => [room, share(value), (value / rows.length).toFixed(1)]),
        ["outside engine and retrieval", share(overhead), (overhead / rows.length).toFixed(1)],
      ],
    );
    const data = {
      recipe,
      seed,
      steps: rows.length,
      overhead: overhead / total,
      rooms: Object.fromEntries(byRoom),
    };
    return { markdown: `${markdown}\n\n${rows.length} steps of ${recipe}, seed ${seed}.`, data };
  },
};

interface Profiled {
  /** Time on the main thread by room. */
  readonly milliseconds: ReadonlyMap<string, number>;
  readonly rows: readonly MetricRow[];
}

async function profiledStage(path: string, overrides: readonly string[]): Promise<Profiled> {
  const folder = await mkdtemp(join(tmpdir(), "forager-step-"));
  const session = new inspector.Session();
  session.connect();
  const rows: MetricRow[] = [];
  let isReinforcing = false;
  let stopped: Promise<inspector.Profiler.StopReturnType> | undefined;
  try {
    await session.post("Profiler.enable");
    const recipe = await loadRecipe(path, {
      // Checkpoints wait for the disk, which is not part of a step.
      overrides: [...overrides, "checkpoint.everySteps=1000"],
    });
    const steps = recipe.stages.at(-1)?.steps;
    await train({
      recipe,
      folder: join(folder, "run"),
      resume: false,
      now: () => performance.now(),
      codeVersion: "bench",
      reporter: {
        ...silentReporter,
        stageStarted: ({ type }) => {
          isReinforcing = type === "reinforcement";
          if (isReinforcing) void session.post("Profiler.start");
        },
        stepDone: (row) => {
          if (!isReinforcing) return;
          rows.push(row);
          if (row.step === steps) stopped = session.post("Profiler.stop");
        },
      },
    });
    if (!stopped) throw new Error(`the reinforcement stage ended before its step ${steps}`);
    return { milliseconds: byRoom((await stopped).profile), rows };
  } finally {
    session.disconnect();
    await rm(folder, { recursive: true, force: true });
  }
}

function byRoom({ nodes, samples = [], timeDeltas = [] }: inspector.Profiler.Profile): Map<string, number> {
  const rooms = new Map<number, string>();
  const visit = (node: inspector.Profiler.ProfileNode, caller: string): void => {
    const room = roomOf(node.callFrame) ?? caller;
    rooms.set(node.id, room);
    for (const child of node.children ?? []) visit(byId.get(child) as typeof node, room);
  };
  const byId = new Map(nodes.map((node) => [node.id, node]));
  visit(nodes[0] as inspector.Profiler.ProfileNode, "runtime");
  const totals = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const room = rooms.get(id) as string;
    totals.set(room, (totals.get(room) ?? 0) + (timeDeltas[index] as number) / 1000);
  }
  return totals;
}

/** The room a function lies in; native code counts for the function that called them. */
function roomOf({ url, functionName }: inspector.Runtime.CallFrame): string | undefined {
  if (url.includes("onnxruntime")) return "engine";
  if (functionName === "(idle)") return "waiting";
  if (functionName === "(garbage collector)") return "garbage collection";
  return /\/src\/(\w+)\//.exec(url)?.[1];
}
