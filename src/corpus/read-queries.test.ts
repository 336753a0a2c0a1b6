import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readQueries } from "./read-queries.ts";
import { at, useFolders, write } from "./reading.suite.ts";

useFolders();

const expected = [
  { id: "1", text: "who?" },
  { id: "q2", text: "where?" },
];

test.each([
  ["BEIR", "q.jsonl", '{"_id":"1","text":"who?","metadata":{}}\n{"_id":"q2","text":"where?"}'],
  ["other names", "q.jsonl", '{"qid":1,"query":"who?"}\n{"id":"q2","question":"where?"}'],
  ["gzip", "q.jsonl.gz", gzipSync('{"_id":"1","text":"who?"}\n{"_id":"q2","text":"where?"}')],
  ["TSV without a header", "q.tsv", "1\twho?\r\nq2\twhere?\r\n"],
  ["CSV with a header", "q.csv", "id,query\n1,who?\nq2,where?\n"],
  ["a JSON array", "q.json", '[{"id":"1","text":"who?"},{"id":"q2","text":"where?"}]'],
])("queries are read without answers: %s", async (_, name, content) => {
  await write({ [name]: content });
  expect(await readQueries(at(name))).toEqual(expected);
});

test.each([
  ["no id", '{"text":"x"}', /q\.jsonl:1: expected "id" or "_id", .*got nothing/],
  ["no text", '{"id":"x","title":"y"}', /q\.jsonl:1: expected "text", "query" or "question"/],
  ["a repeated id", '{"id":"x","text":"y"}\n{"_id":"x","text":"z"}', /q\.jsonl:2: .*got "x" of line 1 again/],
  ["no JSON", "x", /q\.jsonl:1: expected one JSON object/],
  ["nothing", "", /expected queries, .*got none/],
])("queries with %s are refused", async (_, content, message) => {
  await write({ "q.jsonl": content });
  await expect(readQueries(at("q.jsonl"))).rejects.toThrow(message);
});
