/** Benchmarks by name: from folders of both layouts, and from a hub on this machine. */
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Host, startHost } from "../shared/hub-server.fixture.ts";
import { type Benchmark, benchmarks, findBenchmark } from "./benchmarks.ts";
import { openBenchmark } from "./open-benchmark.ts";

let folder: string;
let host: Host;
const line = '{"id":"test_0","question":"who?","golden_answers":["Ada"],"metadata":{}}\n';
const named = (name: string): Benchmark => findBenchmark(name) as Benchmark;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-benchmark-"));
  host = await startHost();
  await mkdir(join(folder, "nq"));
  await writeFile(join(folder, "nq", "test.jsonl"), line);
  await writeFile(join(folder, "hotpotqa.jsonl"), line.replace("Ada", "Grace"));
});
afterAll(async () => {
  await host.close();
  await rm(folder, { recursive: true });
});

test("the seven benchmarks have 51,713 questions", () => {
  expect(benchmarks.map(({ name }) => name).join(" ")).toBe(
    "nq triviaqa popqa hotpotqa 2wikimultihopqa musique bamboogle",
  );
  expect(benchmarks.reduce((sum, { n }) => sum + n, 0)).toBe(51_713);
  expect(findBenchmark("nq.jsonl")).toBeUndefined();
});

test("a folder with one folder or one file a benchmark is read, and names the data set", async () => {
  expect(await openBenchmark(named("nq"), { folder })).toMatchObject([
    { dataset: "nq", goldAnswers: ["Ada"] },
  ]);
  expect(await openBenchmark(named("hotpotqa"), { folder })).toMatchObject([
    { dataset: "hotpotqa", goldAnswers: ["Grace"] },
  ]);
});

test("one Parquet file of Search-R1 with all sets gives each its own", async () => {
  const joint = join(folder, "joint");
  await mkdir(joint);
  await copyFile(
    join(import.meta.dirname, "../../test/golden/corpus/search-r1.parquet"),
    join(joint, "test.parquet"),
  );
  expect(await openBenchmark(named("nq"), { folder: joint })).toMatchObject([
    { dataset: "nq", text: "who wrote it?" },
  ]);
  expect(await openBenchmark(named("hotpotqa"), { folder: joint })).toMatchObject([
    { goldAnswers: ["here"] },
  ]);
  await expect(openBenchmark(named("popqa"), { folder: joint })).rejects.toThrow("data_source popqa");
});

test("a benchmark that is nowhere is an error that says what was expected", async () => {
  await expect(openBenchmark(named("musique"), { folder })).rejects.toThrow(
    "expected musique/dev.jsonl, musique.jsonl",
  );
});

test("what the folder lacks is fetched from the hub once", async () => {
  const asked: string[] = [];
  host.handle = (request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(200, { "content-length": Buffer.byteLength(line), "x-repo-commit": "c0ffee" });
    response.end(line);
  };
  const hub = { endpoint: host.address, cacheFolder: join(folder, "cache"), retries: 0 };
  const places = { folder, hub };
  expect(await openBenchmark(named("bamboogle"), places)).toMatchObject([
    { dataset: "bamboogle", id: "test_0" },
  ]);
  expect(await openBenchmark(named("bamboogle"), places)).toHaveLength(1);
  expect(asked.map(decodeURIComponent)).toEqual([
    "/datasets/RUC-NLPIR/FlashRAG_datasets/resolve/main/bamboogle/test.jsonl",
  ]);
});
