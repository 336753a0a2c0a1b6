/**
 * What every retriever must do, whatever it ranks by. A retriever's own test file calls `describeRetriever` with
 * a function that makes one over the passages given.
 */
import { describe, expect, test } from "vitest";
import { corpusHash } from "../corpus/corpus-hash.ts";
import type { Passage } from "../corpus/passage.ts";
import type { Retriever } from "./retriever.ts";

const facts: readonly (readonly [title: string, text: string])[] = [
  ["Lake Garda", "Lake Garda is the largest lake in Italy."],
  ["Lake Como", "Lake Como lies in Lombardy, in the north of Italy."],
  ["Lake Como", "Lake Como lies in Lombardy, in the north of Italy."],
  ["Rhône", "The Rhône rises in Switzerland and flows through France."],
  ["Danube", "The Danube flows through ten countries, more than any other river."],
  ["Lake Como", "Lake Como lies in Lombardy, in the north of Italy."],
  ["Vltava", "The Vltava is the longest river of Czechia."],
  ["Москва", "Москва стоит на реке Москве."],
];
const passages: readonly Passage[] = facts.map(([title, text], index) => ({ id: `p${index}`, title, text }));

/** Queries that users and models send by mistake. */
const oddQueries = {
  "an empty query": "",
  "a query of spaces and line ends": " \n\t ",
  "a query of stop words": "what is the",
  "a query of punctuation": "?! … --- \"'",
  "a query of 100 kB": "longest river ".repeat(7200),
  "one word of 100 kB": "x".repeat(100_000),
  "a query in another script": "最長の川はどこですか",
  "control characters and half a surrogate pair": "river\u0000\u001b[31m\ud83d",
  "names of object properties": "constructor __proto__ toString",
};

export function describeRetriever(
  name: string,
  factory: (passages: readonly Passage[]) => Promise<Retriever>,
): void {
  describe(`${name} as a retriever`, () => {
    test("answers queries in the order in which they were asked", async () => {
      const retriever = await factory(passages);
      const titles = ["Vltava", "Danube", "Vltava", "Lake Garda"];
      const answers = await retriever.retrieve(titles, 1);
      expect(answers.map((answer) => answer[0]?.passage.title)).toEqual(titles);
    });

    test("returns passages as they are in the corpus, best first", async () => {
      const [answer = []] = await (await factory(passages)).retrieve(["largest lake in Italy"], 4);
      expect(answer[0]?.passage).toEqual(passages[0]);
      const scores = answer.map(({ score }) => score);
      expect(scores).toEqual([...scores].sort((a, b) => b - a));
      for (const { passage } of answer) expect(passages).toContainEqual(passage);
    });

    test("returns at most k passages, and with a smaller k the first of them", async () => {
      const retriever = await factory(passages);
      const [four = []] = await retriever.retrieve(["a lake in Italy"], 4);
      const [two = []] = await retriever.retrieve(["a lake in Italy"], 2);
      expect(four).toHaveLength(4);
      expect(two).toEqual(four.slice(0, 2));
    });

    test("returns each passage once when k exceeds the corpus", async () => {
      const [answer = []] = await (await factory(passages)).retrieve(["river lake Italy France"], 1000);
      const ids = answer.map(({ passage }) => passage.id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.length).toBeLessThanOrEqual(passages.length);
    });

    test("orders equal scores by position in the corpus", async () => {
      const [answer = []] = await (await factory(passages)).retrieve(["Lake Como in Lombardy"], 3);
      expect(answer.map(({ passage }) => passage.id)).toEqual(["p1", "p2", "p5"]);
    });

    test("gives the same answer again, also to calls that overlap", async () => {
      const retriever = await factory(passages);
      const queries = ["river in Czechia", "lake in Lombardy", "Rhône"];
      const once = await retriever.retrieve(queries, 3);
      const twice = await Promise.all([retriever.retrieve(queries, 3), retriever.retrieve(queries, 3)]);
      expect(twice).toEqual([once, once]);
    });

    test("answers no queries with no answers", async () => {
      expect(await (await factory(passages)).retrieve([], 3)).toEqual([]);
    });

    test.each(Object.entries(oddQueries))("survives %s between two others", async (_, query) => {
      const retriever = await factory(passages);
      const answers = await retriever.retrieve(["Danube", query, "Vltava"], 3);
      expect(answers).toHaveLength(3);
      expect(answers[0]?.[0]?.passage.title).toBe("Danube");
      expect(answers[1]?.length).toBeLessThanOrEqual(3);
      expect(answers[2]?.[0]?.passage.title).toBe("Vltava");
    });

    test("refuses a k that is not a positive integer", async () => {
      const retriever = await factory(passages);
      for (const k of [0, -1, 1.5, Number.NaN])
        await expect(retriever.retrieve(["Danube"], k)).rejects.toThrow("k must be an integer of at least 1");
    });

    test("stops with the reason of the signal, before and during a call", async () => {
      const retriever = await factory(passages);
      const reason = new Error("enough");
      await expect(retriever.retrieve(["Danube"], 1, AbortSignal.abort(reason))).rejects.toBe(reason);
      const controller = new AbortController();
      const call = retriever.retrieve(Array(5000).fill("longest river in Italy"), 5, controller.signal);
      controller.abort(reason);
      await expect(call).rejects.toBe(reason);
    });

    test("says what its results depend on", async () => {
      const { identity } = await factory(passages);
      expect(identity.method).not.toBe("");
      expect(identity.corpusHash).toBe(corpusHash(passages));
      expect(identity.indexHash).toMatch(/^[0-9a-f]{64}$/);
      expect(JSON.parse(JSON.stringify(identity))).toEqual(identity);
    });

    test("has the same identity over the same corpus, another over another", async () => {
      const [first, again, other] = await Promise.all(
        [passages, passages, passages.slice(1)].map((from) => factory(from)),
      );
      expect(again?.identity).toEqual(first?.identity);
      expect(other?.identity.corpusHash).not.toBe(first?.identity.corpusHash);
      expect(other?.identity.indexHash).not.toBe(first?.identity.indexHash);
    });
  });
}
