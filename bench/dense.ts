/**
 * Dense retrieval against the libraries that others use: exact search against faiss IndexFlatIP, the approximate index
 * against HNSW of faiss and usearch in Python at equal recall, encoding against onnxruntime in Python with the same
 * model file. Equal threads, interleaved rounds, whole calls on both sides. FORAGER_PYTHON names a Python with the
 * peers; FORAGER_ASSETS a folder with bge-small-en-v1.5 for encoding. What is missing is left out, and the table
 * says so.
 *
 * Vectors are made up unless `--vectors FILE --queries FILE` name files of 32-bit floats: points around a curved
 * sheet of few dimensions, since evenly random ones are unlike those of any encoder and hard for every graph.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { random } from "../src/shared/random.ts";
import type { Bench } from "./bench.ts";
import {
  type Comparison,
  formatSummary,
  interleave,
  markdownTable,
  ratios,
  type Side,
  summarise,
} from "./measure.ts";
import { type Answer, Worker, WorkerError } from "./worker.ts";

interface Result extends Comparison {
  readonly case: string;
  readonly note: string;
}

interface Settings {
  readonly rounds: number;
  readonly threads: number;
  readonly count: number;
  readonly dimensions: number;
  readonly cases: readonly string[];
  readonly vectors: string | undefined;
  readonly queries: string | undefined;
}

interface Sides {
  readonly ours: Worker;
  readonly peer: Worker | undefined;
  readonly versions: Readonly<Record<string, string>>;
}

const K = 10;
const QUERIES = 1024;
const RECALL = 0.955;
const graphOptions = { connectivity: 16, expansionAdd: 128 };
const caseNames = [
  "exact-single",
  "exact-bulk",
  "graph-faiss",
  "graph-usearch",
  "encode-32",
  "encode-fastest",
];

export const denseBench: Bench = {
  name: "dense",
  about:
    "exact and approximate vector search and encoding against faiss, usearch, onnxruntime (FORAGER_PYTHON)",
  options: `[--rounds 5] [--threads CORES] [--count 33879] [--dimensions 384] [--vectors F32 --queries F32] [--cases ${caseNames.join(",")}]`,
  async run(args) {
    const settings = settingsOf(args);
    const folder = await mkdtemp(join(tmpdir(), "forager-bench-"));
    const sides = await startSides();
    try {
      const files = await vectorFiles(folder, settings);
      const results: Result[] = [];
      if (settings.cases.some((name) => !name.startsWith("encode")))
        await both(sides, "load", { ...files, dimensions: settings.dimensions, threads: settings.threads });
      for (const name of settings.cases) {
        const result = await measureCase(name, settings, sides);
        if (result === undefined) continue;
        process.stderr.write(`${row(result).join(" | ")}\n`);
        results.push(result);
      }
      const { threads } = settings;
      return { markdown: render(results, threads, sides), data: { threads, peers: sides.versions, results } };
    } finally {
      sides.ours.close();
      sides.peer?.close();
      await rm(folder, { recursive: true });
    }
  },
};

function settingsOf(args: readonly string[]): Settings {
  const names = ["rounds", "threads", "count", "dimensions", "cases", "vectors", "queries"];
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  const { values } = parseArgs({ args: [...args], options });
  const whole = (name: string, otherwise: number): number => {
    const value = values[name] === undefined ? otherwise : Number(values[name]);
    if (Number.isInteger(value) && value >= 1) return value;
    throw new Error(`--${name} must be a whole number of at least 1`);
  };
  const cases = values.cases?.split(",") ?? caseNames;
  const unknown = cases.find((name) => !caseNames.includes(name));
  if (unknown !== undefined) throw new Error(`Unknown case ${unknown}; there are ${caseNames.join(", ")}`);
  return {
    rounds: whole("rounds", 5),
    threads: whole("threads", availableParallelism()),
    count: whole("count", 33_879),
    dimensions: whole("dimensions", 384),
    cases,
    vectors: values.vectors,
    queries: values.queries,
  };
}

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

async function startSides(): Promise<Sides> {
  const ours = new Worker(process.execPath, ["--import", "tsx", local("dense-worker.ts")]);
  const python = process.env.FORAGER_PYTHON ?? "python3";
  const peer = new Worker(python, [local("peers/dense_peers.py")]);
  try {
    const { versions } = await peer.request("info");
    return { ours, peer, versions: versions as Readonly<Record<string, string>> };
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error;
    process.stderr.write(
      `No comparison: ${python} does not start (${error.message.split("\n")[0]}). Set FORAGER_PYTHON.\n`,
    );
    peer.close();
    return { ours, peer: undefined, versions: {} };
  }
}

async function both({ ours, peer }: Sides, operation: string, parameters: Answer): Promise<void> {
  await ours.request(operation, parameters);
  await peer?.request(operation, parameters);
}

async function vectorFiles(
  folder: string,
  { vectors, queries, count, dimensions }: Settings,
): Promise<{ readonly vectors: string; readonly queries: string }> {
  if (vectors !== undefined && queries !== undefined) return { vectors, queries };
  const made = { vectors: join(folder, "vectors.f32"), queries: join(folder, "queries.f32") };
  const sheet = curvedSheet(dimensions);
  await writeFile(made.vectors, new Uint8Array(sheet(count).buffer));
  await writeFile(made.queries, new Uint8Array(sheet(QUERIES).buffer));
  return made;
}

/** Unit vectors: sines of random mixtures of 24 hidden numbers, plus a little noise. */
function curvedSheet(dimensions: number): (count: number) => Float32Array {
  const hidden = 24;
  const chance = random(1, "bench-vectors");
  const mixture = Float32Array.from(
    { length: dimensions * hidden },
    () => chance.normal() / Math.sqrt(hidden),
  );
  return (count) => {
    const vectors = new Float32Array(count * dimensions);
    for (let row = 0; row < count; row++) {
      const point = Array.from({ length: hidden }, () => 1.5 * chance.normal());
      const vector = vectors.subarray(row * dimensions, (row + 1) * dimensions);
      for (let i = 0; i < dimensions; i++) {
        const mixed = point.reduce((sum, x, j) => sum + x * (mixture[i * hidden + j] as number), 0);
        vector[i] = Math.sin(mixed) + 0.1 * chance.normal();
      }
      const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
      for (let i = 0; i < dimensions; i++) vector[i] = (vector[i] as number) / length;
    }
    return vectors;
  };
}

/** Undefined when our own side cannot be measured; the peer's side is left out where its library is missing. */
async function measureCase(name: string, settings: Settings, sides: Sides): Promise<Result | undefined> {
  process.stderr.write(`${name}\n`);
  const [kind, variant = ""] = name.split("-");
  const library = kind === "graph" ? variant : kind === "exact" ? "faiss" : "onnxruntime";
  const peer = library in sides.versions ? sides.peer : undefined;
  const compare = async (work: Answer, operation: string, note: string): Promise<Result> => ({
    case: name,
    note,
    ...(await interleave(
      settings.rounds,
      side(sides.ours, operation, work),
      peer && side(peer, operation, { ...work, library, batch: variant === "32" ? 32 : "fastest" }),
    )),
  });
  if (kind === "exact") {
    const note = await agreement({ ...sides, peer });
    return await compare({ mode: variant, k: K, count: variant === "single" ? 200 : QUERIES }, "exact", note);
  }
  if (kind === "graph") {
    const wanted = { k: K, recall: RECALL, ...graphOptions };
    const ours = await sides.ours.request("graph", wanted);
    const theirs = await peer?.request("graph", { ...wanted, library });
    const note = [ours, theirs].map(describeGraph).join("; peer ");
    return await compare({ k: K, count: QUERIES }, "search", note);
  }
  return await measureEncoding(settings, { ...sides, peer }, compare);
}

function describeGraph(made: Answer | undefined): string {
  if (made === undefined) return "none";
  return `recall ${Number(made.recall).toFixed(3)} at expansion ${made.expansion}, built in ${Number(made.buildSeconds).toFixed(1)} s`;
}

/** Share of the best ten that both sides give alike; a speed without it means nothing. */
async function agreement({ ours, peer }: Pick<Sides, "ours" | "peer">): Promise<string> {
  if (peer === undefined) return "";
  const work = { k: K, count: 200 };
  const [a, b] = await Promise.all([ours, peer].map((worker) => worker.request("answers", work)));
  const [mine, theirs] = [a, b].map((answer) => (answer?.ids ?? []) as number[][]);
  const alike = (mine ?? []).map((ids, i) => ids.filter((id) => theirs?.[i]?.includes(id)).length / K);
  const share = alike.reduce((sum, x) => sum + x, 0) / alike.length;
  if (share < 0.999) throw new Error(`exact search agrees with faiss on ${share} of the answers only`);
  return `${(100 * share).toFixed(2)} % of the answers alike`;
}

async function measureEncoding(
  { threads }: Settings,
  { ours, peer }: Pick<Sides, "ours" | "peer">,
  compare: (work: Answer, operation: string, note: string) => Promise<Result>,
): Promise<Result | undefined> {
  const folder = join(process.env.FORAGER_ASSETS ?? "", "bge-small-en-v1.5");
  const corpus = join(process.env.FORAGER_SHARED ?? "../shared", "data", "corpus.jsonl");
  const missing = [join(folder, "model.onnx"), corpus].find((path) => !existsSync(path));
  if (missing !== undefined) {
    process.stderr.write(
      `Encoding is not measured: ${missing} is not there (FORAGER_ASSETS, FORAGER_SHARED).\n`,
    );
    return undefined;
  }
  const lines = (await readFile(corpus, "utf8")).split("\n", 25_600).filter((_, i) => i % 100 === 0);
  const texts = lines.map((line) => (JSON.parse(line) as { contents: string }).contents);
  const recipe = await ours.request("encoder", { folder, texts, threads });
  const made = await peer?.request("encoder", { folder, texts, threads, ...recipe });
  return await compare({}, "encode", made === undefined ? "" : `peer's fastest batch: ${made.fastest}`);
}

function side(worker: Worker, operation: string, work: Answer): Side {
  return async () => {
    const { seconds, tokens } = await worker.request(operation, work);
    return { seconds: Number(seconds), tokens: Number(tokens) };
  };
}

function row(result: Result): string[] {
  const isCompared = result.peer.length > 0;
  return [
    result.case,
    formatSummary(summarise(result.ours)),
    isCompared ? formatSummary(summarise(result.peer)) : "not measured",
    isCompared ? formatSummary(summarise(ratios(result))) : "",
    result.note,
  ];
}

function render(results: readonly Result[], threads: number, { versions }: Sides): string {
  const head = ["case", "Forager queries or passages/s", "peer", "ratio", "note"];
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${markdownTable(head, results.map(row))}\n\nMedian (min-max) of interleaved rounds, ${threads} threads, k = ${K}; peers: ${names.join(", ") || "none"}.`;
}
