/**
 * An index of millions of passages, from a file to a folder on disk: what `forager plan` says beforehand against what
 * `forager index` then takes, each as the user starts it, and the first answer and single queries from disk. The corpus is
 * made from a real one (`large-corpus.ts`) in a scratch folder, which is removed afterwards.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import type { Bench } from "./bench.ts";
import { makeLargeCorpus } from "./large-corpus.ts";
import { questionsIn } from "./lexical.ts";
import { formatBytes, formatNumber, markdownTable } from "./measure.ts";
import { type Answer, Worker } from "./worker.ts";

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Words that the corpus did not have, as a share of all: some 1.4 million new ones in 500 million. */
const NEW_WORDS = 0.004;
const K = 10;

interface Options {
  readonly corpus: string;
  readonly questions: string;
  readonly passages: number;
  readonly words: number;
  readonly every: number;
  readonly scratch: string;
}

export const largeIndexBench: Bench = {
  name: "large-index",
  about: "an index of 10,000,000 passages on disk: what plan says, what it takes, answers from disk",
  options:
    "--corpus FILE --questions FOLDER|FILE [--passages 10000000] [--words 50] [--every 4] [--scratch FOLDER]",
  async run(args) {
    const options = optionsOf(args);
    const folder = await mkdtemp(join(options.scratch, "forager-bench-"));
    try {
      return await measure(options, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function measure(options: Options, folder: string): ReturnType<Bench["run"]> {
  const { passages, words, every } = options;
  const corpus = join(folder, "corpus.jsonl");
  const index = join(folder, "index");
  const queries = (await questionsIn(options.questions))
    .filter((_, i) => i % every === 0)
    .map(({ text }) => text);
  await makeLargeCorpus(options.corpus, corpus, { passages, words, newWords: NEW_WORDS });
  const { size: corpusBytes } = await stat(corpus);
  process.stderr.write(`${passages} passages in ${formatBytes(corpusBytes)}\n`);
  const plan = await forager("plan", corpus);
  process.stderr.write(`planned: ${JSON.stringify(plan)}\n`);
  const disk = watchDisk(folder, corpusBytes);
  let peakDiskBytes = 0;
  const built = await forager("index", corpus, "--out", index).finally(async () => {
    peakDiskBytes = await disk.stop();
  });
  process.stderr.write(`built: ${JSON.stringify(built)}\n`);
  const found = await searchFromDisk(index, queries);
  const measured = { ...built, peakDiskBytes };
  const head = ["index", "planned", "measured", "measured / planned"];
  const note = `${passages} passages of at most ${words} words, ${formatBytes(corpusBytes)}; ${formatNumber(passages / Number(built.seconds))} passages/s; ${formatNumber(Number(built.processorSeconds))} s of the processor, all threads together.`;
  return {
    markdown: [markdownTable(head, rowsOf(plan, measured)), note, found.text].join("\n\n"),
    data: { corpusBytes, plan, measured, search: found.data },
  };
}

function rowsOf(plan: Answer, measured: Answer): string[][] {
  const row = (name: string, key: string, format: (value: number) => string): string[] => {
    const [planned, real] = [Number(plan[key]), Number(measured[key])];
    return [name, format(planned), format(real), (real / planned).toFixed(2)];
  };
  return [
    row("passages", "passages", (count) => formatNumber(count)),
    row("seconds", "seconds", formatNumber),
    row("peak memory", "peakBytes", formatBytes),
    row("on disk", "bytes", formatBytes),
    row("on disk while it is built", "peakDiskBytes", formatBytes),
  ];
}

/** Tells at its end how much processor time a process took, which other work on the machine changes little. */
const tellProcessorTime = `data:text/javascript,process.on("exit",()=>process.stderr.write("\\n"+JSON.stringify(process.cpuUsage())))`;

/** Runs a command of the program in a process of its own; its JSON and its `processorSeconds`. Throws where it fails. */
async function forager(...words: readonly string[]): Promise<Answer> {
  const program = ["--import", tellProcessorTime, "--import", "tsx", local("../src/cli/main.ts")];
  const run = promisify(execFile)(process.execPath, [...program, ...words, "--json"], { maxBuffer: 2 ** 26 });
  const { stdout, stderr } = await run;
  const { user, system } = JSON.parse(lastLine(stderr)) as NodeJS.CpuUsage;
  return { ...(JSON.parse(lastLine(stdout)) as Answer), processorSeconds: (user + system) / 1e6 };
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) as string;
}

/** Most bytes below `folder` beyond `less`, looked at every second. */
function watchDisk(folder: string, less: number): { stop(): Promise<number> } {
  let most = 0;
  let isStopped = false;
  const watching = (async () => {
    while (!isStopped) {
      most = Math.max(most, (await bytesBelow(folder)) - less);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  })();
  return {
    stop: async () => {
      isStopped = true;
      await watching;
      return most;
    },
  };
}

/** Files that are gone by the time they are looked at count nothing. */
async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = entries.map(async (entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return await bytesBelow(path);
    return await stat(path).then(
      ({ size }) => size,
      () => 0,
    );
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function searchFromDisk(
  folder: string,
  queries: readonly string[],
): Promise<{ readonly text: string; readonly data: object }> {
  const start = performance.now();
  const worker = new Worker(process.execPath, ["--import", "tsx", local("lexical-worker.ts")]);
  try {
    const opening = { folder, query: queries[0] ?? "", options: { storage: "disk" } };
    const open = await worker.request("open", opening);
    const firstSeconds = (performance.now() - start) / 1000;
    const [cold, warm] = [
      await worker.request("latencies", { queries, k: K }),
      await worker.request("latencies", { queries, k: K }),
    ];
    const times = [cold, warm].map(({ milliseconds }) => describeTimes(milliseconds as number[]));
    const text = `From disk: first answer ${firstSeconds.toFixed(2)} s after the start of the process (${Number(open.seconds).toFixed(2)} s to open and answer, resident ${formatBytes(Number(open.bytes))}); ${queries.length} queries one by one, k = ${K}: ${times[0]}; again: ${times[1]}; resident ${formatBytes(Number(warm.bytes))}.`;
    return { text, data: { firstSeconds, open, cold, warm } };
  } finally {
    worker.close();
  }
}

function describeTimes(milliseconds: readonly number[]): string {
  const sorted = [...milliseconds].sort((a, b) => a - b);
  const at = (share: number): string =>
    formatNumber(sorted[Math.floor(share * (sorted.length - 1))] as number);
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms`;
}

function optionsOf(args: readonly string[]): Options {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { corpus: text, questions: text, passages: text, words: text, every: text, scratch: text },
  });
  const { corpus, questions, scratch = tmpdir() } = values;
  if (corpus === undefined || questions === undefined)
    throw new Error("large-index needs --corpus FILE and --questions FOLDER or FILE");
  const count = (name: "passages" | "words" | "every", otherwise: number): number => {
    const value = Number(values[name] ?? otherwise);
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} must be a whole number of at least 1`);
    return value;
  };
  return {
    corpus,
    questions,
    scratch,
    passages: count("passages", 10_000_000),
    words: count("words", 50),
    every: count("every", 4),
  };
}
