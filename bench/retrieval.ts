/**
 * Everything about retrieval in one run: BM25 on a corpus and on thirty perturbed copies of it, vectors, and the server,
 * each against its peers. The parts run alone too (`lexical`, `dense`, `serving`, with more options).
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import { denseBench } from "./dense.ts";
import { makeLargeCorpus } from "./large-corpus.ts";
import { lexicalBench } from "./lexical.ts";
import { servingBench } from "./serving.ts";

/** Thirty times the 33,879 passages of the corpus. */
const LARGE_PASSAGES = 1_016_370;

export const retrievalBench: Bench = {
  name: "retrieval",
  about:
    "lexical on a corpus and on 30 copies of it, dense, serving: all against their peers (FORAGER_PYTHON)",
  options:
    "--data FOLDER (corpus.jsonl and question files) [--large FILE, made where it is missing] [--rounds 5]",
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        data: { type: "string" },
        large: { type: "string" },
        rounds: { type: "string", default: "5" },
      },
    });
    if (values.data === undefined)
      throw new Error("--data FOLDER is missing: a corpus.jsonl with question files");
    const corpus = join(values.data, "corpus.jsonl");
    const lexical = ["--questions", values.data, "--rounds", values.rounds];
    const parts: [string, Bench, string[]][] = [
      ["BM25", lexicalBench, ["--corpus", corpus, ...lexical]],
      ["Vectors", denseBench, ["--rounds", values.rounds]],
      ["Server", servingBench, ["--corpus", corpus]],
    ];
    if (values.large !== undefined) {
      if (!existsSync(values.large)) {
        process.stderr.write(`making ${values.large} …\n`);
        await makeLargeCorpus(corpus, values.large, { passages: LARGE_PASSAGES });
      }
      const large = [
        "--corpus",
        values.large,
        ...lexical,
        "--builds",
        "1",
        "--every",
        "4",
        "--storage",
        "memory",
      ];
      parts.splice(1, 0, ["BM25, large", lexicalBench, large]);
    }
    const sections: string[] = [];
    const data: Record<string, object> = {};
    for (const [title, bench, own] of parts) {
      process.stderr.write(`${title}: ${bench.name} ${own.join(" ")}\n`);
      const result = await bench.run(own);
      sections.push(`## ${title}\n\n${result.markdown}`);
      data[title] = result.data;
    }
    return { markdown: sections.join("\n\n"), data };
  },
};
