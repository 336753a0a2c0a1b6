/**
 * The seven benchmarks that search agents are compared on, by name: which split is customary, how many questions it has,
 * and where it comes from. Sizes and splits are those of FlashRAG's data, on which Search-R1, AI-SearchPlanner and DeSA
 * report. The files themselves are not part of this library; licences are as their authors state them.
 */
export interface Benchmark {
  readonly name: string;
  /** The customary split. */
  readonly split: "test" | "dev";
  /** Its questions. */
  readonly n: number;
  readonly licence: string;
  /** The paper, by its arXiv number or its anthology. */
  readonly source: string;
}

const table = [
  [
    "nq",
    "test",
    3610,
    "CC-BY-SA-3.0",
    "Natural Questions, Kwiatkowski et al., TACL 2019, in the open form of Lee et al. 2019",
  ],
  [
    "triviaqa",
    "test",
    11313,
    "Apache-2.0 (code); none stated for the questions",
    "TriviaQA, arXiv 1705.03551",
  ],
  ["popqa", "test", 14267, "MIT", "PopQA, arXiv 2212.10511"],
  ["hotpotqa", "dev", 7405, "CC-BY-SA-4.0", "HotpotQA, arXiv 1809.09600"],
  ["2wikimultihopqa", "dev", 12576, "Apache-2.0", "2WikiMultihopQA, arXiv 2011.01060"],
  ["musique", "dev", 2417, "CC-BY-4.0", "MuSiQue, arXiv 2108.00573"],
  ["bamboogle", "test", 125, "MIT", "Bamboogle, arXiv 2210.03350"],
] as const;

export type BenchmarkName = (typeof table)[number][0];

export const benchmarks: readonly Benchmark[] = table.map(([name, split, n, licence, source]) => ({
  name,
  split,
  n,
  licence,
  source,
}));

/** The benchmark called `name`; undefined for anything else, such as the path of a file. */
export function findBenchmark(name: string): Benchmark | undefined {
  return benchmarks.find((benchmark) => benchmark.name === name);
}
