/**
 * Searching an open table. Equal scores are ordered by position in the corpus, for which a query asks for more rows than
 * are wanted while the last score equals the one before it, up to `MOST_TIES`. LanceDB cannot stop a query that runs;
 * an aborted call does not wait for it.
 */
import { RetrieverError } from "../../errors.ts";
import { untilAborted } from "../../shared/concurrency.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import type { Encoder } from "../dense/encoder.ts";
import { namedOptions } from "../lexical/fold.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "../retriever.ts";
import { hasVectorIndex, nearest } from "./lance-indexes.ts";
import type { FinishedManifest } from "./lance-manifest.ts";
import type { LanceQuery, LanceTable } from "./lance-module.ts";
import type { LanceSource } from "./lance-options.ts";
import type { LancePlace } from "./lance-place.ts";
import { passageOfLine } from "./lance-rows.ts";
import { lanceTerms } from "./lance-terms.ts";

export interface OpenTable {
  readonly place: LancePlace;
  readonly table: LanceTable;
  readonly manifest: FinishedManifest;
  readonly source: LanceSource;
}

type MakeQuery = () => LanceQuery;

/** One way to rank the rows of a table. */
export interface TableRanking {
  readonly method: string;
  readonly parameters: Readonly<Record<string, string | number | boolean>>;
  /** The column LanceDB ranks by, and what it means. */
  readonly column: "_score" | "_distance";
  scoreOf(value: number): number;
  /** The query of LanceDB for each of ours; undefined where nothing can match. */
  prepare(
    queries: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<readonly (MakeQuery | undefined)[]>;
}

/**
 * Steps of a score of words. LanceDB adds up the terms in an order that differs from build to build, and with it the last
 * bits; rounded, passages with equal terms have equal scores, and two builds the same order.
 */
const SCORE_STEPS = 1000;

export function wordRanking({ place, table, manifest }: OpenTable): TableRanking {
  const { approximateFrom, ...analysis } = manifest.settings.build;
  const terms = lanceTerms(manifest.settings.build);
  return {
    method: "lance-bm25",
    parameters: { k1: 1.2, b: 0.75, ...namedOptions(analysis) },
    column: "_score",
    scoreOf: (value) => Math.round(value * SCORE_STEPS) / SCORE_STEPS,
    prepare: async (queries) =>
      queries.map((query) => {
        const wanted = terms.ofQuery(query);
        if (wanted === "") return undefined;
        return () => table.query().fullTextSearch(new place.lance.MatchQuery(wanted, "terms"));
      }),
  };
}

export function vectorRanking({ table, manifest, source }: OpenTable, encoder: Encoder): TableRanking {
  const isApproximate = hasVectorIndex(manifest);
  const { probes, refine } = source;
  return {
    method: isApproximate ? "lance-dense-approximate" : "lance-dense",
    parameters: {
      encoder: encoder.identity.name,
      ...(isApproximate && { probes, refine, recall: manifest.recall?.value ?? 0 }),
    },
    column: "_distance",
    // LanceDB's distance of inner products is 1 less the product.
    scoreOf: (value) => 1 - value,
    prepare: async (queries, signal) => {
      const vectors = await encoder.encodeQueries(queries, { signal });
      const { dimensions } = encoder.identity;
      return queries.map((_, i) => {
        const vector = vectors.slice(i * dimensions, (i + 1) * dimensions);
        if (!vector.every(Number.isFinite)) return undefined;
        return () => nearest(table, vector, source);
      });
    },
  };
}

/** The table as a retriever. */
export function tableSearch(open: OpenTable, ranking: TableRanking): Retriever {
  return {
    identity: identityOf(open, ranking),
    retrieve: async (queries, k, signal) => {
      if (!Number.isInteger(k) || k < 1)
        throw new RetrieverError(`k must be an integer of at least 1, got ${k}`);
      signal?.throwIfAborted();
      if (queries.length === 0) return [];
      const prepared = await ranking.prepare(queries, signal);
      signal?.throwIfAborted();
      const answers: ScoredPassage[][] = queries.map(() => []);
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < prepared.length) {
          signal?.throwIfAborted();
          const i = next++;
          const query = prepared[i];
          if (query) answers[i] = await answerTo(open, ranking, { query, k });
        }
      };
      await untilAborted(Promise.all(Array.from({ length: open.source.concurrency }, work)), signal);
      return answers;
    },
  };
}

interface Hit {
  readonly score: number;
  readonly position: number;
  readonly line: unknown;
}

/** Rows that are read at most to order those whose score equals that of the last one wanted. */
const MOST_TIES = 1024;

async function answerTo(
  open: OpenTable,
  ranking: TableRanking,
  { query, k }: { readonly query: MakeQuery; readonly k: number },
): Promise<ScoredPassage[]> {
  const rows = open.manifest.count;
  for (let extra = 1; ; extra *= 4) {
    const limit = Math.min(k + extra, rows + 1);
    const hits = await hitsOf(open, ranking, { query, limit });
    const [last, wanted] = [hits.at(-1), hits[k - 1]];
    const isCut = hits.length === limit && last?.score === wanted?.score;
    if (isCut && extra < MOST_TIES) continue;
    return hits.slice(0, k).map(({ line, position, score }) => ({
      passage: passageOfLine(line, open.place.name, position),
      score,
    }));
  }
}

async function hitsOf(
  { place, source: { timeoutMs } }: OpenTable,
  { column, scoreOf }: TableRanking,
  { query, limit }: { readonly query: MakeQuery; readonly limit: number },
): Promise<Hit[]> {
  const rows = await place.attempt(`cannot search the table ${place.name}`, () =>
    query().limit(limit).select(["position", "passage", column]).toArrow({ timeoutMs }),
  );
  const [positions, lines, values] = ["position", "passage", column].map((name) => rows.getChild(name));
  return Array.from({ length: rows.numRows }, (_, i) => ({
    score: scoreOf(Number(values?.get(i))),
    position: Number(positions?.get(i)),
    line: lines?.get(i),
  })).sort((a, b) => b.score - a.score || a.position - b.position);
}

function identityOf({ manifest }: OpenTable, { method, parameters }: TableRanking): RetrieverIdentity {
  const { version, corpusHash, count } = manifest;
  const settings = { ...manifest.settings, build: namedOptions(manifest.settings.build) };
  return {
    method,
    corpusHash,
    indexHash: sha256(canonicalJson({ version, settings, corpusHash, count, method, parameters })),
    parameters,
  };
}
