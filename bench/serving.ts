/**
 * The retrieval server under load: `connections` clients with calls of 1 to 64 queries. Rounds of the index in process,
 * our server and a FastAPI server of the Search-R1 kind take turns; then our server alone for a longer time, with its
 * memory. Everything is on 127.0.0.1; the clients are one process of their own, which on two cores takes one.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import { formatBytes, formatNumber, formatSummary, markdownTable, summarise } from "./measure.ts";
import { type Answer, Worker } from "./worker.ts";

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const startWorker = (file: string): Worker => new Worker(process.execPath, ["--import", "tsx", local(file)]);

interface Options {
  readonly corpus: string;
  readonly questions: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly roundSeconds: number;
  readonly connections: number;
  readonly k: number;
}

/** What one side did in one round. */
interface Round {
  readonly rate: number;
  /** Processor time of the side, clients not counted; not a number where the system does not tell. */
  readonly cpuMicroseconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly failures: Readonly<Record<string, number>>;
}

interface MemorySample {
  readonly seconds: number;
  readonly bytes: number;
}

export const servingBench: Bench = {
  name: "serving",
  about: "the retrieval server under load against the index in process and FastAPI (FORAGER_PYTHON)",
  options:
    "[--corpus ../shared/data/corpus.jsonl] [--questions ../shared/data/train.jsonl] [--seconds 60] [--rounds 3] " +
    "[--round-seconds 10] [--connections 256] [--k 3]",
  async run(args) {
    const options = optionsOf(args);
    const folder = mkdtempSync(join(tmpdir(), "forager-serving-"));
    const closers: (() => void)[] = [() => rmSync(folder, { recursive: true })];
    try {
      return await measure(options, join(folder, "index"), (close) => closers.unshift(close));
    } finally {
      for (const close of closers) close();
    }
  },
};

function optionsOf(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      corpus: { type: "string", default: "../shared/data/corpus.jsonl" },
      questions: { type: "string", default: "../shared/data/train.jsonl" },
      seconds: { type: "string", default: "60" },
      rounds: { type: "string", default: "3" },
      "round-seconds": { type: "string", default: "10" },
      connections: { type: "string", default: "256" },
      k: { type: "string", default: "3" },
    },
  });
  for (const file of [values.corpus, values.questions])
    if (!existsSync(file)) throw new Error(`${file} is missing; give --corpus and --questions`);
  return {
    corpus: resolve(values.corpus),
    questions: resolve(values.questions),
    seconds: Number(values.seconds),
    rounds: Number(values.rounds),
    roundSeconds: Number(values["round-seconds"]),
    connections: Number(values.connections),
    k: Number(values.k),
  };
}

async function measure(
  options: Options,
  index: string,
  onEnd: (close: () => void) => void,
): Promise<{ readonly markdown: string; readonly data: object }> {
  const { corpus, questions, k } = options;
  const cli = ["--import", "tsx", local("../src/cli/main.ts")];
  execFileSync(process.execPath, [...cli, "index", corpus, "--out", index, "--json"], { stdio: "pipe" });
  const inProcess = startWorker("serving-index.ts");
  const clients = startWorker("serving-load.ts");
  onEnd(() => [inProcess, clients].map((worker) => worker.close()));
  await inProcess.request("open", { index, questions });
  const ours = await startListening(process.execPath, [...cli, "serve", "retriever", index, "--port", "0"]);
  onEnd(() => ours.child.kill());
  const peers = await startPeers(corpus);
  onEnd(() => peers.map(({ child }) => child.kill()));
  const load = (url: string, seconds: number): Promise<Answer> =>
    clients.request("load", { url, questions, connections: options.connections, seconds, k });
  const sides = {
    process: () => inProcess.request("search", { seconds: options.roundSeconds, k }),
    ours: () => withCpu(ours, () => load(ours.url, options.roundSeconds)),
    ...Object.fromEntries(
      peers.map((peer) => [peer.name, () => withCpu(peer, () => load(peer.url, options.roundSeconds))]),
    ),
  };
  const rounds = await takeTurns(options.rounds, sides);
  const memory = watchMemory(ours.child.pid as number);
  const soak = await load(ours.url, options.seconds);
  const samples = memory.end();
  const data = { options, rounds, soak, memory: samples };
  return { markdown: render(rounds, soak, samples, options), data };
}

interface Listening {
  readonly child: ChildProcess;
  readonly url: string;
  readonly name: string;
}

/** Both forms of the FastAPI server; none, with a remark, where Python lacks its packages. */
async function startPeers(corpus: string): Promise<readonly Listening[]> {
  const python = process.env.FORAGER_PYTHON ?? "python3";
  const server = [local("peers/fastapi_retriever.py"), corpus, "0"];
  try {
    return [await startListening(python, server), await startListening(python, [...server, "batched"])];
  } catch (error) {
    process.stderr.write(`No comparison with FastAPI: ${error instanceof Error ? error.message : error}\n`);
    return [];
  }
}

/** Adds the processor time that a server took meanwhile, as Linux tells it in ticks of 10 ms. */
async function withCpu({ child }: Listening, work: () => Promise<Answer>): Promise<Answer> {
  const cpuSeconds = (): number => {
    const path = `/proc/${child.pid}/stat`;
    if (!existsSync(path)) return Number.NaN;
    const fields = readFileSync(path, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  };
  const before = cpuSeconds();
  const answer = await work();
  return { ...answer, cpuSeconds: cpuSeconds() - before };
}

/** Starts a server that prints a JSON line with its `url` when it is ready. */
function startListening(command: string, args: readonly string[]): Promise<Listening> {
  const child = spawn(command, [...args], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-500);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${command} ended with code ${code}: ${errors}`)));
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (!line.startsWith("{")) return;
      const { url, name } = JSON.parse(line) as { url: string; name: string };
      resolve({ child, url, name });
    });
  });
}

/** One round to warm up, which is thrown away, then `rounds` with the sides in turn. */
async function takeTurns(
  rounds: number,
  sides: Readonly<Record<string, () => Promise<Answer>>>,
): Promise<Record<string, Round[]>> {
  const results: Record<string, Round[]> = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++)
    for (const [name, side] of Object.entries(sides)) {
      const answer = await side();
      const rate = Number(answer.queries) / Number(answer.seconds);
      process.stderr.write(
        `${round === 0 ? "warm-up" : `round ${round}`} ${name}: ${formatNumber(rate)} queries/s\n`,
      );
      if (round === 0) continue;
      const failures = (answer.failures ?? {}) as Record<string, number>;
      const cpuMicroseconds = (Number(answer.cpuSeconds) / Number(answer.queries)) * 1e6;
      results[name]?.push({
        rate,
        cpuMicroseconds,
        p50: Number(answer.p50),
        p99: Number(answer.p99),
        failures,
      });
    }
  return results;
}

/** Resident memory of a process once a second, as `ps` tells it. */
function watchMemory(pid: number): { end(): readonly MemorySample[] } {
  const samples: MemorySample[] = [];
  const start = performance.now();
  const timer = setInterval(() => {
    const kibibytes = Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)]).toString());
    samples.push({ seconds: (performance.now() - start) / 1000, bytes: kibibytes * 1024 });
  }, 1000);
  return {
    end: () => {
      clearInterval(timer);
      return samples;
    },
  };
}

const labels: Readonly<Record<string, string>> = {
  process: "index in process, one call after the other",
  ours: "forager serve retriever",
};

function render(
  rounds: Readonly<Record<string, readonly Round[]>>,
  soak: Answer,
  samples: readonly MemorySample[],
  options: Options,
): string {
  const ours = (rounds.ours ?? []).map(({ rate }) => rate);
  const rows = Object.entries(rounds).map(([name, results]) => {
    const rates = results.map(({ rate }) => rate);
    const ratio = rates.map((rate, round) => (ours[round] ?? Number.NaN) / rate);
    const times = results.every(({ p50 }) => Number.isFinite(p50))
      ? [summarise(results.map(({ p50 }) => p50)), summarise(results.map(({ p99 }) => p99))]
      : [];
    return [
      labels[name] ?? name,
      formatSummary(summarise(rates)),
      name === "ours" ? "1" : formatSummary(summarise(ratio)),
      `${formatNumber(summarise(results.map(({ cpuMicroseconds }) => cpuMicroseconds)).median)} µs`,
      ...[0, 1].map((place) => (times[place] === undefined ? "" : `${formatNumber(times[place].median)} ms`)),
      String(
        results.flatMap(({ failures }) => Object.values(failures)).reduce((sum, count) => sum + count, 0),
      ),
    ];
  });
  const head = ["side", "queries/s", "ours over it", "CPU/query", "p50", "p99", "errors"];
  const notes = [
    `Median (min-max) of ${options.rounds} rounds of ${options.roundSeconds} s in turn, ${options.connections} connections, ` +
      `calls of 1-64 queries, k = ${options.k}.`,
    `Then ${options.seconds} s of ours alone: ${formatNumber(Number(soak.queries) / Number(soak.seconds))} queries/s in ` +
      `${formatNumber(Number(soak.calls))} calls, p50 ${formatNumber(Number(soak.p50))} ms, p99 ${formatNumber(Number(soak.p99))} ms, ` +
      `errors ${JSON.stringify(soak.failures)}; memory by quarters ${quarters(samples)}.`,
  ];
  return `${markdownTable(head, rows)}\n\n${notes.join("\n")}`;
}

/** The median of each quarter of the time. */
function quarters(samples: readonly MemorySample[]): string {
  const size = samples.length / 4;
  return [0, 1, 2, 3]
    .map((quarter) => samples.slice(Math.floor(quarter * size), Math.floor((quarter + 1) * size)))
    .filter((part) => part.length > 0)
    .map((part) => formatBytes(summarise(part.map(({ bytes }) => bytes)).median))
    .join(", ");
}
