/**
 * A LanceDB table in a folder against Forager's own index folder read from disk, by words: seconds to build and to
 * the first answer, queries per second one by one and in one call, memory, disk. Interleaved rounds, each side a
 * process of its own, one for building and one for searching. LanceDB must be installed (see docs/large-indexes.md).
 */
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import {
  type Comparison,
  formatBytes,
  formatNumber,
  formatSummary,
  interleave,
  markdownTable,
  ratios,
  summarise,
} from "./measure.ts";
import { Worker } from "./worker.ts";

const kinds = ["lance", "folder"] as const;
const questionFiles = ["nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"];
const works = [
  { name: "one by one, k = 10", one: true, k: 10, count: 200 },
  { name: "in one call, k = 10", one: false, k: 10, count: 400 },
  { name: "in one call, k = 100", one: false, k: 100, count: 200 },
];

interface Fixed {
  readonly buildSeconds: number;
  readonly buildPeak: number;
  readonly diskBytes: number;
  readonly openSeconds: number;
}

export const lanceBench: Bench = {
  name: "lance",
  about: "a LanceDB table against an index folder on disk; LanceDB must be installed",
  options: "[--rounds 5] [--data ../shared/data] [--corpus DATA/corpus.jsonl]",
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: { rounds: { type: "string" }, data: { type: "string" }, corpus: { type: "string" } },
    });
    const data = values.data ?? join(process.env.FORAGER_SHARED ?? "../shared", "data");
    const rounds = Number(values.rounds ?? 5);
    if (!Number.isInteger(rounds) || rounds < 1)
      throw new Error("--rounds must be a whole number of at least 1");
    const folder = await mkdtemp(join(tmpdir(), "forager-bench-lance-"));
    try {
      return await measure({ folder, data, rounds, corpus: values.corpus ?? join(data, "corpus.jsonl") });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function measure(setting: {
  readonly folder: string;
  readonly data: string;
  readonly corpus: string;
  readonly rounds: number;
}): Promise<{ markdown: string; data: object }> {
  const { folder, data, corpus, rounds } = setting;
  const uris = { lance: join(folder, "lance"), folder: join(folder, "folder") };
  const questions = questionFiles.map((name) => join(data, `${name}.jsonl`));
  const workers = { lance: startWorker(), folder: startWorker() };
  try {
    const fixed: Record<string, Fixed> = {};
    for (const kind of kinds) {
      const built = await build({ kind, corpus, uri: uris[kind] });
      const { seconds } = await workers[kind].request("open", { kind, uri: uris[kind], questions });
      fixed[kind] = { ...built, openSeconds: Number(seconds) };
    }
    const results: (Comparison & { name: string })[] = [];
    for (const { name, ...work } of works) {
      const sides = kinds.map((kind) => async () => {
        const { seconds, tokens } = await workers[kind].request("search", work);
        return { seconds: Number(seconds), tokens: Number(tokens) };
      });
      results.push({ name, ...(await interleave(rounds, sides[0] as (typeof sides)[0], sides[1])) });
    }
    const peaks = { lance: await peakOf(workers.lance), folder: await peakOf(workers.folder) };
    return { markdown: render(fixed, peaks, results), data: { corpus, fixed, peaks, results } };
  } finally {
    for (const kind of kinds) workers[kind].close();
  }
}

function startWorker(): Worker {
  const script = fileURLToPath(new URL("lance-worker.ts", import.meta.url));
  return new Worker(process.execPath, ["--import", "tsx", script]);
}

async function build(work: {
  kind: string;
  corpus: string;
  uri: string;
}): Promise<Omit<Fixed, "openSeconds">> {
  const worker = startWorker();
  try {
    const { seconds } = await worker.request("build", work);
    return {
      buildSeconds: Number(seconds),
      buildPeak: await peakOf(worker),
      diskBytes: await bytesOf(work.uri),
    };
  } finally {
    worker.close();
  }
}

async function peakOf(worker: Worker): Promise<number> {
  return Number((await worker.request("peak")).bytes);
}

async function bytesOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder, { recursive: true })) {
    const entry = await stat(join(folder, name));
    if (entry.isFile()) bytes += entry.size;
  }
  return bytes;
}

function render(
  fixed: Readonly<Record<string, Fixed>>,
  peaks: Readonly<Record<string, number>>,
  results: readonly (Comparison & { name: string })[],
): string {
  const row = (name: string, value: (kind: string) => string): string[] => [name, ...kinds.map(value), ""];
  const rows = [
    row("build, s", (kind) => formatNumber(fixed[kind]?.buildSeconds ?? 0)),
    row("peak memory of the build", (kind) => formatBytes(fixed[kind]?.buildPeak ?? 0)),
    row("disk", (kind) => formatBytes(fixed[kind]?.diskBytes ?? 0)),
    row("open to the first answer, s", (kind) => formatNumber(fixed[kind]?.openSeconds ?? 0)),
    ...results.map(({ name, ours, peer }) => [
      `queries/s ${name}`,
      formatSummary(summarise(ours)),
      formatSummary(summarise(peer)),
      formatSummary(summarise(ratios({ ours, peer }))),
    ]),
    row("peak memory of searching", (kind) => formatBytes(peaks[kind] ?? 0)),
  ];
  return markdownTable(["work", "LanceDB table", "index folder on disk", "ratio"], rows);
}
