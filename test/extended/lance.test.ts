/**
 * LanceDB tables, in a folder and in an object store (moto's S3 server on this machine). LanceDB is optional: where it
 * is not installed these tests are skipped, and those of S3 where moto cannot be installed either.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { corpusHash } from "../../src/corpus/corpus-hash.ts";
import type { Passage } from "../../src/corpus/passage.ts";
import { fakeEncoder } from "../../src/retrieval/dense/fake-encoder.fixture.ts";
import { type BuildLanceOptions, buildLanceTable } from "../../src/retrieval/lance/build-lance-table.ts";
import { loadLance } from "../../src/retrieval/lance/lance-module.ts";
import type { LanceStorage } from "../../src/retrieval/lance/lance-options.ts";
import { type LanceRetrieverOptions, lanceRetriever } from "../../src/retrieval/lance/lance-retriever.ts";
import { buildBm25Index } from "../../src/retrieval/lexical/bm25.ts";
import { describeRetriever } from "../../src/retrieval/retriever.suite.ts";
import type { ScoredPassage } from "../../src/retrieval/retriever.ts";
import { random } from "../../src/shared/random.ts";

const missing = whyMissing();
const folder = mkdtempSync(join(tmpdir(), "forager-lance-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function whyMissing(): string | undefined {
  try {
    loadLance();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

let made = 0;
const freshUri = (): string => join(folder, `database-${made++}`);
const opened: { close(): Promise<void> }[] = [];
const open = async (uri: string, options: LanceRetrieverOptions) => {
  const retriever = await lanceRetriever(uri, options);
  opened.push(retriever);
  return retriever;
};
afterAll(async () => {
  for (const retriever of opened) await retriever.close();
});

const words =
  "lake river mountain city Italy France north south large old bridge castle king war music".split(" ");
/** The same passages at each call, among them many with equal scores. */
function* randomPassages(count: number): Generator<Passage> {
  const chance = random(7, "lance");
  const word = (): string => words[chance.below(words.length)] as string;
  for (let i = 0; i < count; i++) {
    const text = Array.from({ length: 4 + chance.below(8) }, word).join(" ");
    yield { id: `p${i}`, title: `${word()} ${i % 97}`, text: `${text}.` };
  }
}

/** Equal passages and scores, but for the last bits of scores, which differ from build to build. */
function expectAlike(one: ScoredPassage[][] | undefined, other: ScoredPassage[][] | undefined): void {
  expect(one).toHaveLength(queries.length);
  for (const [i, answer] of (one ?? []).entries()) {
    const others = other?.[i] ?? [];
    expect(answer.length).toBe(others.length);
    expect(answer.length).toBeGreaterThan(0);
    for (const [rank, { passage, score }] of answer.entries()) {
      const same = others.find((found) => found.passage.id === passage.id);
      expect(Math.abs((others[rank]?.score ?? -9) - score)).toBeLessThan(0.0021);
      if (score > (answer.at(-1)?.score ?? 0) + 0.0021) expect(same?.passage).toEqual(passage);
    }
  }
}

const queries = [
  "large lake in Italy",
  "old bridge",
  "castle of a king",
  "war 41",
  "music north south France",
];

describe.skipIf(missing !== undefined)(`LanceDB${missing ? ` (skipped: ${missing})` : ""}`, () => {
  const encoder = fakeEncoder();
  for (const mode of ["bm25", "dense", "hybrid"] as const)
    describeRetriever(`a LanceDB table, ${mode}`, async (passages) => {
      const uri = freshUri();
      await buildLanceTable(passages, uri, { table: "passages", encoder });
      return open(uri, { table: "passages", mode, ...(mode !== "bm25" && { encoder }) });
    });

  test("gives passages back whole: unknown keys, places of origin, half surrogate pairs, control characters", async () => {
    const passages: Passage[] = [
      {
        id: "1",
        title: "one",
        text: "cut \ud83d in half \u0000",
        extra: { url: "x", deep: { list: [1, null] } },
      },
      { id: "2", title: "", text: "two\r\nlines", source: { document: "d", start: 3, end: 9, page: 2 } },
      { id: "3", title: '"three"', text: "東京タワーは高い" },
    ];
    const uri = freshUri();
    const built = await buildLanceTable(passages, uri, { table: "t", batchSize: 2 });
    expect(built).toEqual({ count: 3, corpusHash: corpusHash(passages), resumedAt: 0 });
    const retriever = await open(uri, { table: "t" });
    const answers = await retriever.retrieve(["half", "lines", "東京"], 5);
    expect(answers.map((answer) => answer.map(({ passage }) => passage))).toEqual(
      passages.map((one) => [one]),
    );
  });

  test("reads nothing into a query: operators, quotes, fields and wildcards are words or nothing", async () => {
    const uri = freshUri();
    await buildLanceTable(randomPassages(500), uri, { table: "t" });
    const retriever = await open(uri, { table: "t" });
    const [plain = []] = await retriever.retrieve(["old bridge"], 20);
    const odd = [
      '"old" bridge',
      "+old -bridge",
      "old* bridge~2",
      "text:old^9 bridge",
      "(old AND (bridge",
      "{old]} \\ bridge",
    ];
    const without = odd.map((query) => query.replace(/\b(text|AND|2|9)\b/g, " "));
    for (const answer of await retriever.retrieve(without, 20)) expect(answer).toEqual(plain);
    for (const answer of await retriever.retrieve(odd, 20)) expect(answer.length).toBe(20);
    expect(await retriever.retrieve(['{"match":{"terms":"old"}}', "' OR 1=1 --", "%_"], 3)).toHaveLength(3);
  });

  test("finds what the embedded index finds, with ties in the same order", async () => {
    const passages = [...randomPassages(3000)];
    const uri = freshUri();
    await buildLanceTable(passages, uri, { table: "t", batchSize: 700 });
    const retriever = await open(uri, { table: "t" });
    const embedded = await buildBm25Index(passages);
    const [theirs, ours] = [await retriever.retrieve(queries, 20), await embedded.retrieve(queries, 20)];
    for (const [i, answer] of theirs.entries()) {
      const ids = new Set(ours[i]?.map(({ passage }) => passage.id));
      expect(answer.filter(({ passage }) => ids.has(passage.id)).length).toBeGreaterThanOrEqual(14);
      for (const [rank, { score, passage }] of answer.entries()) {
        const next = answer[rank + 1];
        if (next && next.score === score)
          expect(Number(next.passage.id.slice(1))).toBeGreaterThan(Number(passage.id.slice(1)));
      }
    }
  });

  test("finds near neighbours through the vector index, whose recall is known", async () => {
    const uri = freshUri();
    await buildLanceTable(randomPassages(3000), uri, {
      table: "t",
      encoder,
      build: { approximateFrom: 1000 },
    });
    await buildLanceTable(randomPassages(3000), uri, { table: "exact", encoder });
    const approximate = await open(uri, { table: "t", mode: "dense", encoder });
    const exact = await open(uri, { table: "exact", mode: "dense", encoder });
    expect(approximate.manifest.recall?.value).toBeGreaterThan(0.8);
    expect(exact.manifest.recall).toBeNull();
    expect(approximate.identity.method).toBe("lance-dense-approximate");
    const [near, all] = [await approximate.retrieve(queries, 10), await exact.retrieve(queries, 10)];
    const found = near.flatMap((answer, i) =>
      answer.filter(({ score }) => score >= (all[i]?.[9]?.score ?? 2) - 1e-4),
    );
    expect(found.length / (queries.length * 10)).toBeGreaterThan(0.8);
  });

  test("refuses what does not belong together, with what to do", async () => {
    const uri = freshUri();
    await buildLanceTable(randomPassages(10), uri, { table: "words" });
    await buildLanceTable(randomPassages(10), uri, { table: "vectors", encoder });
    const other = fakeEncoder({ name: "other" });
    await expect(lanceRetriever(uri, { table: "words", mode: "dense", encoder })).rejects.toThrow(
      "has no vectors",
    );
    await expect(lanceRetriever(uri, { table: "vectors", mode: "hybrid" })).rejects.toThrow("encoder fake");
    await expect(lanceRetriever(uri, { table: "vectors", mode: "dense", encoder: other })).rejects.toThrow(
      "do not belong together",
    );
    await expect(lanceRetriever(uri, { table: "nothing" })).rejects.toThrow("there is no table nothing");
    await expect(lanceRetriever(join(folder, "nowhere"), { table: "t" })).rejects.toThrow("no such folder");
    await expect(buildLanceTable(randomPassages(10), uri, { table: "words" })).rejects.toThrow(
      "finished already",
    );
    await expect(buildLanceTable([], freshUri(), { table: "t" })).rejects.toThrow("empty corpus");
    const retriever = await lanceRetriever(uri, { table: "words" });
    await retriever.close();
    await expect(retriever.retrieve(["old"], 1)).rejects.toThrow("cannot search the table words");
  });

  test("stops a build on request, goes on with the same passages, and refuses others", async () => {
    const uri = freshUri();
    const controller = new AbortController();
    const options: BuildLanceOptions = { table: "t", batchSize: 300, encoder };
    const stopped = buildLanceTable(randomPassages(2000), uri, {
      ...options,
      signal: controller.signal,
      onProgress: ({ passages }) => passages >= 900 && controller.abort(new Error("enough")),
    });
    await expect(stopped).rejects.toThrow("enough");
    await expect(lanceRetriever(uri, { table: "t" })).rejects.toThrow("not finished (900 passages so far)");
    const changed = [...randomPassages(2000)].with(450, { id: "p450", title: "", text: "changed" });
    await expect(buildLanceTable(changed, uri, options)).rejects.toThrow("began with other passages");
    await expect(buildLanceTable(randomPassages(500), uri, options)).rejects.toThrow("only 500");
    await expect(buildLanceTable(randomPassages(2000), uri, { table: "t" })).rejects.toThrow(
      "other settings",
    );
    const built = await buildLanceTable(randomPassages(2000), uri, options);
    expect(built).toEqual({ count: 2000, corpusHash: corpusHash(randomPassages(2000)), resumedAt: 900 });
  });

  test("a second build into the same folder is refused while the first one runs", async () => {
    const uri = freshUri();
    async function* slow(): AsyncGenerator<Passage> {
      yield* randomPassages(200);
      const second = buildLanceTable(randomPassages(300), uri, { table: "t", batchSize: 100 });
      await expect(second).rejects.toThrow(/the table t in .* is being built by process \d+/);
      yield* [...randomPassages(300)].slice(200);
    }
    const built = await buildLanceTable(slow(), uri, { table: "t", batchSize: 100 });
    expect(built).toEqual({ count: 300, corpusHash: corpusHash(randomPassages(300)), resumedAt: 0 });
    expect(readdirSync(uri).filter((name) => name.startsWith("."))).toEqual([]);
  });

  test("a build that is killed at any place goes on, and answers as one that was not", async () => {
    const uri = freshUri();
    const stops = ["passages 1000", "passages 4000", "text index", "vector index"];
    for (const stop of stops) await buildAndKill(uri, stop);
    const built = await buildLanceTable(randomPassages(6000), uri, { table: "t", batchSize: 1000, encoder });
    expect(built.resumedAt).toBe(6000);
    await buildLanceTable(randomPassages(6000), uri, { table: "whole", batchSize: 1000, encoder });
    for (const mode of ["bm25", "dense", "hybrid"] as const) {
      const [resumed, whole] = await Promise.all(
        ["t", "whole"].map((table) => open(uri, { table, mode, ...(mode !== "bm25" && { encoder }) })),
      );
      expect(resumed?.identity).toEqual(whole?.identity);
      expectAlike(await resumed?.retrieve(queries, 50), await whole?.retrieve(queries, 50));
    }
  });

  describeObjectStore();
});

/** Builds in a process of its own, which waits at `stop` until it is killed. */
async function buildAndKill(uri: string, stop: string): Promise<void> {
  const room = new URL("../../src/retrieval/", import.meta.url);
  const corpus = join(folder, "killed.jsonl");
  writeFileSync(corpus, [...randomPassages(6000)].map((passage) => JSON.stringify(passage)).join("\n"));
  const script = `
    const { buildLanceTable } = await import(new URL("lance/build-lance-table.ts", "${room}"));
    const { fakeEncoder } = await import(new URL("dense/fake-encoder.fixture.ts", "${room}"));
    const { readFileSync } = await import("node:fs");
    const passages = readFileSync(${JSON.stringify(corpus)}, "utf8").split("\\n").map((line) => JSON.parse(line));
    await buildLanceTable(passages, ${JSON.stringify(uri)}, {
      table: "t", batchSize: 1000, encoder: fakeEncoder(),
      onProgress: ({ stage, passages }) => {
        const place = stage === "passages" ? stage + " " + passages : stage;
        console.log(place);
        if (place === ${JSON.stringify(stop)}) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
      },
    });
    console.log("finished");`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script], {
    cwd: join(import.meta.dirname, "../.."),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    if (line === stop || line === "finished") setTimeout(() => child.kill("SIGKILL"), 3);
  });
  await new Promise((resolve) => child.on("close", resolve));
  expect(lines, errors).toContain(stop);
  expect(lines).not.toContain("finished");
}

/** A Python that has moto's server: the one of FORAGER_PYTHON, or one made for these tests. */
function findMoto(): { readonly python?: string; readonly reason?: string } {
  const has = (python: string): boolean => spawnSync(python, ["-c", "import moto.server"]).status === 0;
  const given = process.env.FORAGER_PYTHON ?? "python3";
  if (has(given)) return { python: given };
  const venv = join(folder, "python");
  const python = join(venv, "bin/python");
  const isMade = spawnSync("python3", ["-m", "venv", venv]).status === 0;
  if (isMade)
    spawnSync(python, ["-m", "pip", "install", "-q", "--no-input", "moto[server]"], { timeout: 300_000 });
  return isMade && existsSync(python) && has(python)
    ? { python }
    : { reason: 'no Python with "moto[server]", and it could not be installed' };
}

function describeObjectStore(): void {
  const moto = missing === undefined ? findMoto() : { reason: "no LanceDB" };
  const title = `in an object store${moto.python ? "" : ` (skipped: ${moto.reason})`}`;
  describe.skipIf(moto.python === undefined)(title, () => {
    let server: ChildProcess | undefined;
    let storage: LanceStorage;
    const uri = "s3://forager/tables";
    const encoder = fakeEncoder();

    beforeAll(async () => {
      const port = await freePort();
      const endpoint = `http://127.0.0.1:${port}`;
      const run = "from moto.server import main; main()";
      server = spawn(moto.python as string, ["-c", run, "-p", String(port)], { stdio: "ignore" });
      storage = {
        endpoint,
        region: "us-east-1",
        allowHttp: true,
        accessKey: "THE-ACCESS-KEY",
        secretKey: "THE-SECRET-KEY",
      };
      await makeBucket(endpoint);
    });
    afterAll(() => {
      server?.kill("SIGKILL");
    });

    test("answers as the table in a folder does, also when its build was interrupted", async () => {
      const local = freshUri();
      await buildLanceTable(randomPassages(3000), local, { table: "t", encoder });
      const controller = new AbortController();
      const options: BuildLanceOptions = { table: "t", batchSize: 1000, encoder, storage };
      const stopped = buildLanceTable(randomPassages(3000), uri, {
        ...options,
        signal: controller.signal,
        onProgress: () => controller.abort(new Error("enough")),
      });
      await expect(stopped).rejects.toThrow("enough");
      const { resumedAt } = await buildLanceTable(randomPassages(3000), uri, options);
      expect(resumedAt).toBe(1000);
      for (const mode of ["bm25", "dense", "hybrid"] as const) {
        const reading = { table: "t", mode, ...(mode !== "bm25" && { encoder }) };
        const here = await open(local, reading);
        const there = await open(uri, { ...reading, storage });
        expect(there.identity).toEqual(here.identity);
        expectAlike(await there.retrieve(queries, 50), await here.retrieve(queries, 50));
      }
    });

    test("of two builds the one that was started last goes on, with what the other one wrote", async () => {
      const options: BuildLanceOptions = { table: "twice", batchSize: 100, storage };
      let second: ReturnType<typeof buildLanceTable> | undefined;
      async function* slow(): AsyncGenerator<Passage> {
        yield* [...randomPassages(300)].slice(0, 250);
        second = buildLanceTable(randomPassages(300), uri, options);
        await second;
        yield* [...randomPassages(300)].slice(250);
      }
      await expect(buildLanceTable(slow(), uri, options)).rejects.toThrow(
        /another build of the table twice in .* was started; this one stops, what it wrote is kept/,
      );
      const corpus = corpusHash(randomPassages(300));
      expect(await second).toEqual({ count: 300, corpusHash: corpus, resumedAt: 200 });
    });

    test("says what is wrong without the keys", async () => {
      const wrong = "s3://no-such-bucket/x";
      const error = await lanceRetriever(wrong, { table: "t", storage }).catch((reason: unknown) => reason);
      expect((error as Error).message).toContain("no-such-bucket");
      const text = `${(error as Error).stack} ${JSON.stringify(error)}`;
      expect(text).not.toMatch(/THE-(ACCESS|SECRET)-KEY/);
      const plain = { ...storage, allowHttp: false };
      await expect(lanceRetriever(uri, { table: "t", storage: plain })).rejects.toThrow("set allowHttp");
    });
  });
}

async function makeBucket(endpoint: string): Promise<void> {
  for (let attempt = 0; ; attempt++)
    try {
      const { ok } = await fetch(`${endpoint}/forager`, { method: "PUT" });
      if (ok) return;
      throw new Error("the bucket was refused");
    } catch (error) {
      if (attempt > 300) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
