import { getEventListeners, setMaxListeners } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError, RetrieverError } from "../../errors.ts";
import { fakeEncoder } from "../dense/fake-encoder.fixture.ts";
import { buildLanceTable } from "./build-lance-table.ts";
import { lanceError, withoutSecrets } from "./lance-errors.ts";
import { LANCE_INSTALL, loadLance } from "./lance-module.ts";
import {
  type LanceStorage,
  lanceBuildSchema,
  lanceSourceSchema,
  lanceStorageSchema,
  storageOf,
} from "./lance-options.ts";
import { answerWithin, storageOptionsOf } from "./lance-place.ts";
import { lanceRetriever } from "./lance-retriever.ts";
import { type OpenTable, tableSearch } from "./lance-search.ts";
import { lanceTerms } from "./lance-terms.ts";

const source = (options: object) => lanceSourceSchema.safeParse({ type: "lance", uri: "tables", ...options });

test("tells the command that installs LanceDB when it is missing", () => {
  expect(() => loadLance("@lancedb/not-installed")).toThrow(RetrieverError);
  expect(() => loadLance("@lancedb/not-installed")).toThrow(LANCE_INSTALL);
});

test("tells the reason when the package is there and does not load", () => {
  expect(() => loadLance("./lance.test.ts")).toThrow(/does not load \(/);
});

describe("options of a recipe", () => {
  test("need a place only", () => {
    expect(source({}).data).toMatchObject({ table: "passages", mode: "bm25", concurrency: 8 });
    expect(source({ uri: "s3://bucket/prefix", mode: "hybrid" }).success).toBe(true);
  });

  test("refuse other kinds of places, names that leave the place, and unknown keys", () => {
    for (const uri of ["", "db://cloud", "http://127.0.0.1/x", "s3://", "file:///tmp"])
      expect(source({ uri }).success).toBe(false);
    for (const table of ["", "..", ".hidden", "a/b", "a\\b", "a b"])
      expect(source({ table }).success).toBe(false);
    expect(source({ probe: 3 }).success).toBe(false);
  });

  test("have a line of documentation each", () => {
    const fields = [lanceSourceSchema, lanceStorageSchema, lanceBuildSchema].flatMap(({ shape }) =>
      Object.entries(shape),
    );
    for (const [name, field] of fields) expect(field.description, name).toMatch(/\.$/);
  });

  test("with an encoder and mode bm25 contradict each other", async () => {
    const encoder = fakeEncoder();
    for (const options of [
      { table: "t", encoder },
      { table: "t", encoder, mode: "bm25" as const },
    ]) {
      await expect(lanceRetriever("tables", options)).rejects.toThrow(ConfigError);
      await expect(lanceRetriever("tables", options)).rejects.toThrow(/expected no encoder, got one/);
    }
  });

  test("a place that cannot hold tables is refused before LanceDB is loaded", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forager-lance-place-"));
    try {
      const [file, index] = [join(folder, "file"), join(folder, "index")];
      await writeFile(file, "mine");
      await mkdir(index);
      await writeFile(join(index, "index.json"), "{}");
      await expect(buildLanceTable([], file, { table: "t" })).rejects.toThrow(
        /is a file, expected a new folder/,
      );
      await expect(buildLanceTable([], index, { table: "t" })).rejects.toThrow(/is an index folder/);
      expect(await readdir(index)).toEqual(["index.json"]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("are checked before LanceDB is loaded", async () => {
    await expect(buildLanceTable([], "db://cloud", { table: "t" })).rejects.toThrow(ConfigError);
    await expect(buildLanceTable([], "tables", { table: "../t" })).rejects.toThrow(/table: .*got "..\/t"/);
    await expect(buildLanceTable([], "tables", { table: "t", batchSize: 0 })).rejects.toThrow("batchSize");
    await expect(buildLanceTable([], "x", { table: "t", build: { titleWeight: 99 } })).rejects.toThrow(
      ConfigError,
    );
  });
});

test("many calls may wait on one signal, and all of them end when it aborts", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const open = {
    manifest: { version: 1, settings: { build: {} }, corpusHash: "c", count: 1 },
    place: { name: "t", attempt: () => new Promise(() => undefined) },
    source: { concurrency: 2, timeoutMs: 1000 },
  } as unknown as OpenTable;
  const search = tableSearch(open, {
    method: "lance-bm25",
    parameters: {},
    column: "_score",
    scoreOf: (value) => value,
    prepare: async (queries) =>
      queries.map(() => () => {
        throw new Error("not asked");
      }),
  });
  setMaxListeners(10, signal);
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on("warning", onWarning);
  const calls = Array.from({ length: 12 }, () => search.retrieve(["q"], 1, signal));
  await setImmediate();
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  controller.abort(new Error("enough"));
  for (const call of calls) await expect(call).rejects.toThrow("enough");
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

describe("storage", () => {
  const keys = lanceStorageSchema.parse({ accessKeyVariable: "A", secretKeyVariable: "S", region: "here" });

  test("takes the values of the variables that are named", () => {
    const storage = storageOf(keys, (name) => ({ A: "one", S: "two" })[name]);
    expect(storage).toMatchObject({ region: "here", accessKey: "one", secretKey: "two" });
    expect(storageOptionsOf(storage)).toEqual({
      aws_region: "here",
      aws_access_key_id: "one",
      aws_secret_access_key: "two",
    });
    expect(storageOptionsOf({})).toEqual({});
  });

  test("names the variable that is not set, and needs both keys or none", () => {
    expect(() => storageOf(keys, (name) => (name === "A" ? "one" : ""))).toThrow(
      /variable S, .*secretKeyVariable/,
    );
    expect(() => storageOptionsOf({ accessKey: "one" })).toThrow(ConfigError);
  });

  test("goes over http:// only when told so", () => {
    const plain: LanceStorage = { endpoint: "http://127.0.0.1:9000" };
    expect(() => storageOptionsOf(plain)).toThrow("allowHttp");
    expect(storageOptionsOf({ ...plain, allowHttp: true })).toMatchObject({ allow_http: "true" });
    expect(storageOptionsOf({ endpoint: "https://s3.example" })).toEqual({
      aws_endpoint: "https://s3.example",
    });
  });

  test("takes keys out of messages, wherever they stand", () => {
    expect(withoutSecrets("key=a+b/ a+b/; xx", ["a+b/", "xx", ""])).toBe("key=*** ***; ***");
  });
});

describe("errors of LanceDB", () => {
  const place =
    ", /usr/local/cargo/registry/src/index.crates.io-1949cf8c6b5b557f/lance-io-8.0.0/src/x.rs:9:92";
  const said = (message: string) => lanceError("cannot search t", new Error(message), ["KEY"]).message;

  test.each([
    [
      `lance error: LanceError(IO): Generic S3 error: Error performing GET http://h/b?list-type=2 in 6ms - Server returned non-2xx status code: 404 Not Found: <?xml version="1.0"?>\n<Error><Code>NoSuchBucket</Code><Message>No KEY bucket</Message></Error>${place}`,
      "the object store replies NoSuchBucket: No *** bucket; there is no such bucket; check its name",
    ],
    [
      "Error performing PUT http://h/b - Server returned non-2xx status code: 403 Forbidden: \n<Error><Code>SignatureDoesNotMatch</Code>\n  <Message>no</Message></Error>",
      "replies SignatureDoesNotMatch: no; the keys are wrong or without rights; check those of the environment",
    ],
    ["Server returned error response: 503 Slow Down: ", "status 503; the object store does not answer as it"],
    [
      `lance error: LanceError(IO): Generic S3 error: GET http://h/b in 15µs - HTTP error: builder error${place}  Caused by: LanceError(IO): again`,
      "GET http://h/b in 15µs - HTTP error: builder error; the endpoint is http://, over which keys and passages are readable; set AWS_ALLOW_HTTP=true",
    ],
    [
      "Failed to get next batch from stream: lance error: LanceError(IO): Generic N/A error: Cloned error: Cloned error: LanceError(IO): Object at location /t/a.lance not found: No such file (os error 2)",
      "Object at location /t/a.lance not found: No such file (os error 2); the table is damaged: files are missing",
    ],
    [
      "LanceError(IO): Object at location x/t.lance/data/a.lance not found: Error performing GET http://h/b/a in 5ms - Server returned non-2xx status code: 404 Not Found: <?xml version='1.0'?>\n<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>",
      "replies NoSuchKey: The specified key does not exist.; the table is damaged: files are missing",
    ],
    [
      "Object at location x not found: Error performing GET http://h/b/a in 5ms - Server returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code><Message>None</Message></Error>",
      "replies NoSuchBucket: None; there is no such bucket",
    ],
    [
      "Object at location x/a.lance not found: Error performing HEAD http://h/b/a in 5ms - Server returned non-2xx status code: 404 Not Found: ",
      "replies with status 404; the table is damaged: files are missing",
    ],
    [
      `lance error: LanceError(IO): Generic memory error: Invalid range 0..6 for object of size 3 bytes${place}`,
      "Invalid range 0..6 for object of size 3 bytes; the table is damaged",
    ],
    [
      "Query Execution error: Execution error: Query timeout after 60000 ms",
      "cannot search t: Query timeout after 60000 ms; try again, or raise timeoutMs",
    ],
    [
      "No space left on device (os error 28)",
      "(os error 28); the disk is full; free some space and run again",
    ],
    ["Read-only file system (os error 30)", "(os error 30); the folder cannot be written"],
  ])("become one line with what to do: %#", (message, expected) => {
    expect(said(message)).toContain(expected);
    expect(said(message)).not.toMatch(/\n|\.rs:|KEY\b.*bucket|LanceError/);
  });

  test("keep a secret that stands where a long message is cut", () => {
    expect(said(`${"x".repeat(298)}KEY`)).toMatch(/x\*\*…$/);
  });

  test("get no advice that may be wrong", () => {
    const account = "Invalid user input: Unable to find object store prefix: no Azure account name in URI";
    expect(said(account)).toBe(`cannot search t: ${account}`);
    expect(said("something new")).toBe("cannot search t: something new");
  });

  test("a place that never answers is given up, on request at once", async () => {
    const never = () => new Promise<never>(() => undefined);
    await expect(answerWithin(never, "cannot open t", { limitMs: 5 })).rejects.toThrow(
      /^cannot open t: no answer within 0.005 s; check that the place can be reached/,
    );
    const enough = AbortSignal.abort(new Error("enough"));
    await expect(answerWithin(never, "t", { limitMs: 60_000, signal: enough })).rejects.toThrow("enough");
    expect(await answerWithin(async () => 7, "t", { limitMs: 60_000 })).toBe(7);
  });
});

describe("terms", () => {
  const terms = lanceTerms(lanceBuildSchema.parse({ titleWeight: 2 }));

  test("of a passage count its title as often as is set", () => {
    expect(terms.ofPassage({ title: "Old Lakes", text: "The lakes' bridges" })).toBe(
      "old lake old lake THE lake bridg",
    );
    const without = lanceTerms(lanceBuildSchema.parse({ titleWeight: 0, language: "none" }));
    expect(without.ofPassage({ title: "Old", text: "Lakes" })).toBe("lakes");
  });

  test("of a query leave stop words out, unless there is nothing else, and repetitions", () => {
    expect(terms.ofQuery("what is the lake of the lakes")).toBe("lake");
    expect(terms.ofQuery("what is the")).toBe("WHAT IS THE");
    expect(terms.ofQuery(`?! ${"x".repeat(300)}`)).toBe("");
  });

  test("of any text hold letters, digits and marks only, and find the text they are of", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), (text) => {
        const indexed = terms.ofPassage({ title: "", text });
        expect(indexed).toMatch(/^[\p{L}\p{N}\p{M} ]*$/u);
        const asked = terms.ofQuery(text).split(" ");
        expect(indexed.split(" ")).toEqual(expect.arrayContaining(asked));
      }),
    );
  });
});
