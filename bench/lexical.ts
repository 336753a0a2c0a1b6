/**
 * The lexical index against bm25s (numba back end, the same stop words and stems) over the same file of passages and
 * the same questions, interleaved: building from the file, searching one by one and in bulk. Searching is from text to
 * positions and scores on both sides. Python is found by FORAGER_PYTHON (default `python3`).
 */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Question } from "../src/corpus/question.ts";
import { readQuestions } from "../src/corpus/read-questions.ts";
import { openIndex } from "../src/retrieval/index-folder.ts";
import type { Bench } from "./bench.ts";
import { qualityOf, qualityTable } from "./lexical-quality.ts";
import {
  type Comparison,
  formatBytes,
  formatSummary,
  interleave,
  markdownTable,
  ratios,
  summarise,
} from "./measure.ts";
import { Worker, WorkerError } from "./worker.ts";

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const files = ["nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"];
const searches = [
  { op: "single", k: 10 },
  { op: "bulk", k: 10 },
  { op: "single", k: 100 },
  { op: "bulk", k: 100 },
] as const;

interface Options {
  readonly corpus: string;
  /** A folder of question files, or one file. */
  readonly questions: string;
  readonly rounds: number;
  /** Rounds of building. */
  readonly builds: number;
  /** Only each so many-th question is asked for speed. */
  readonly every: number;
  readonly storage: string;
  /** Threads for searching in bulk in memory; the peer takes one or two, whichever is faster. */
  readonly threads: number;
}

export const lexicalBench: Bench = {
  name: "lexical",
  about: "BM25: build, searches/s and quality against bm25s (FORAGER_PYTHON)",
  options:
    "--corpus FILE --questions FOLDER|FILE [--rounds 5] [--builds 3] [--every 1] [--storage auto|memory|disk] [--threads 2]",
  async run(args) {
    const options = optionsOf(args);
    const questions = await questionsIn(options.questions);
    const peerName = await findPeer();
    const ours = new Worker(process.execPath, ["--import", "tsx", local("lexical-worker.ts")]);
    const peer = peerName === undefined ? undefined : startPeer();
    try {
      return await measure({ options, questions, ours, peer, peerName: peerName ?? "none" });
    } finally {
      ours.close();
      peer?.close();
    }
  },
};

interface Sides {
  readonly options: Options;
  readonly questions: readonly Question[];
  readonly ours: Worker;
  readonly peer: Worker | undefined;
  readonly peerName: string;
}

async function measure(sides: Sides): ReturnType<Bench["run"]> {
  const { options, questions, ours, peer, peerName } = sides;
  const built = await measureBuild(sides);
  const queries = questions.filter((_, i) => i % options.every === 0).map(({ text }) => text);
  const { storage, threads } = options;
  const open = await ours.request("open", { query: queries[0] ?? "", options: { storage, threads } });
  const speeds: (readonly [string, Comparison])[] = [];
  for (const { op, k } of searches) {
    const side = (worker: Worker) => async () => {
      const { seconds } = await worker.request(op, { queries, k });
      return { seconds: Number(seconds), tokens: queries.length };
    };
    const comparison = await interleave(options.rounds, side(ours), peer && side(peer));
    speeds.push([`${op}, k = ${k}, queries/s`, comparison]);
    process.stderr.write(`${rowOf(`${op} ${k}`, comparison).join(" | ")}\n`);
  }
  const quality = await measureQuality(sides, String(built.folder));
  const table = markdownTable(
    ["work", "Forager", "peer", "ratio"],
    [...built.rows, ...speeds.map(([name, comparison]) => rowOf(name, comparison))],
  );
  const first = `Opened on ${storage}: ${Number(open.seconds).toFixed(2)} s to the first answer, resident ${formatBytes(Number(open.bytes))}, on disk ${formatBytes(built.bytes)}.`;
  const note = `${built.passages} passages, ${queries.length} queries; median (min-max) of interleaved rounds; peer: ${peerName}.`;
  return {
    markdown: [table, first, note, ...(quality === undefined ? [] : [quality])].join("\n\n"),
    data: { peer: peerName, build: built.data, open, searches: Object.fromEntries(speeds) },
  };
}

async function measureBuild({ options: { corpus, builds }, ours, peer }: Sides) {
  const answers = { ours: [] as Record<string, unknown>[], peer: [] as Record<string, unknown>[] };
  for (let round = 0; round < builds; round++) {
    answers.ours.push(await ours.request("build", { corpus }));
    if (peer !== undefined) answers.peer.push(await peer.request("build", { corpus }));
  }
  const peaks = [await ours.request("peak"), await peer?.request("peak")].map((peak) => Number(peak?.bytes));
  const rates = (side: readonly Record<string, unknown>[]) =>
    side.map(({ seconds, passages }) => Number(passages) / Number(seconds));
  const comparison = { ours: rates(answers.ours), peer: rates(answers.peer) };
  const last = answers.ours.at(-1);
  const [ourPeak = 0, peerPeak = 0] = peaks;
  return {
    rows: [
      rowOf("build from the file, passages/s", comparison),
      [
        "build, peak memory",
        formatBytes(ourPeak),
        peer === undefined ? "not measured" : formatBytes(peerPeak),
        peer === undefined ? "" : (ourPeak / peerPeak).toFixed(2),
      ],
    ],
    folder: last?.folder,
    passages: Number(last?.passages),
    bytes: Number(last?.bytes),
    data: { ...answers, peaks },
  };
}

/** Undefined where the corpus has none of the gold passages. */
async function measureQuality({ questions, ours, peer }: Sides, folder: string): Promise<string | undefined> {
  const index = await openIndex(folder, { storage: "disk" });
  try {
    if (!questions.some(({ goldPassages }) => goldPassages.some((id) => index.passageById(id))))
      return undefined;
    const queries = questions.map(({ text }) => text);
    const rank = async (worker: Worker) => {
      const { positions } = await worker.request("ranking", { queries, k: 20 });
      return qualityOf(questions, positions as number[][], index.passages);
    };
    return qualityTable(await rank(ours), peer && (await rank(peer)));
  } finally {
    await index.close();
  }
}

function rowOf(name: string, comparison: Comparison): string[] {
  const isCompared = comparison.peer.length > 0;
  return [
    name,
    formatSummary(summarise(comparison.ours)),
    isCompared ? formatSummary(summarise(comparison.peer)) : "not measured",
    isCompared ? formatSummary(summarise(ratios(comparison))) : "",
  ];
}

function optionsOf(args: readonly string[]): Options {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      corpus: text,
      questions: text,
      rounds: text,
      builds: text,
      every: text,
      storage: text,
      threads: text,
    },
  });
  const { corpus, questions, storage = "auto" } = values;
  if (corpus === undefined || questions === undefined)
    throw new Error("lexical needs --corpus FILE and --questions FOLDER or FILE");
  const count = (name: "rounds" | "builds" | "every" | "threads", otherwise: number): number => {
    const value = Number(values[name] ?? otherwise);
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} must be a whole number of at least 1`);
    return value;
  };
  if (!["auto", "memory", "disk"].includes(storage))
    throw new Error(`--storage must be auto, memory or disk, got ${storage}`);
  return {
    corpus,
    questions,
    storage,
    rounds: count("rounds", 5),
    builds: count("builds", 3),
    every: count("every", 1),
    threads: count("threads", Math.min(2, availableParallelism())),
  };
}

export async function questionsIn(path: string): Promise<Question[]> {
  if (path.endsWith(".jsonl")) return await readQuestions(path);
  const present = files.map((file) => join(path, `${file}.jsonl`)).filter((file) => existsSync(file));
  if (present.length === 0) throw new Error(`${path} has none of ${files.join(".jsonl, ")}.jsonl`);
  return (await Promise.all(present.map((file) => readQuestions(file)))).flat();
}

const startPeer = (): Worker =>
  new Worker(process.env.FORAGER_PYTHON ?? "python3", [local("peers/bm25s_lexical.py")]);

async function findPeer(): Promise<string | undefined> {
  const worker = startPeer();
  try {
    return String((await worker.request("info")).name);
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error;
    process.stderr.write(
      `No comparison: bm25s with numba and PyStemmer cannot run (${error.message.split("\n")[0]}). Set FORAGER_PYTHON to a Python that has them.\n`,
    );
    return undefined;
  } finally {
    worker.close();
  }
}
