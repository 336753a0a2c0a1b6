/**
 * The questions of a benchmark that is named: from a folder laid out as FlashRAG does (`NAME/SPLIT.jsonl`), with one file
 * a benchmark (`NAME.jsonl`), or as Search-R1 does (one `test.parquet` with all of them); else from a hub of data sets.
 * Files may be compressed.
 */
import { join } from "node:path";
import { FileError } from "../errors.ts";
import { exists } from "../shared/files.ts";
import { downloadModel, type HubOptions } from "../shared/hub.ts";
import type { Benchmark } from "./benchmarks.ts";
import type { Question } from "./question.ts";
import { readQuestions } from "./read-questions.ts";

export interface BenchmarkPlaces {
  /** Looked at first. */
  readonly folder?: string | undefined;
  /** Asked where the folder has no such benchmark; absent: nothing is downloaded. */
  readonly hub?: HubOptions | undefined;
}

/** FlashRAG's data sets on the hub. */
const repository = "datasets/RUC-NLPIR/FlashRAG_datasets";
const endings = [".jsonl", ".jsonl.gz", ".parquet", ".json"];

/**
 * All questions of the benchmark's customary split, in the order of the file. Throws `FileError` where it is nowhere,
 * `HubError` where the download fails, and the errors of `readQuestions`.
 */
export async function openBenchmark(
  { name, split }: Benchmark,
  { folder, hub }: BenchmarkPlaces,
): Promise<Question[]> {
  const paths = folder === undefined ? [] : candidates(folder, { name, split });
  for (const path of paths) if (await exists(path)) return await readQuestions(path, { dataset: name });
  const joint = folder === undefined ? undefined : join(folder, "test.parquet");
  if (joint !== undefined && (await exists(joint))) {
    const own = (await readQuestions(joint)).filter(({ dataset }) => dataset === name);
    if (own.length > 0) return own;
  }
  if (hub === undefined)
    throw new FileError(
      `the benchmark ${name} is not in ${folder ?? "data.folder, which is not set"}; expected ${name}/${split}.jsonl, ${name}.jsonl (.gz, .parquet), or test.parquet with data_source ${name}`,
    );
  const path = `${name}/${split}.jsonl`;
  const cached = await downloadModel({ repository, revision: "main" }, [{ anyOf: [path] }], hub);
  return await readQuestions(join(cached, path), { dataset: name });
}

function candidates(folder: string, { name, split }: Pick<Benchmark, "name" | "split">): string[] {
  return [join(folder, name, split), join(folder, name)].flatMap((path) =>
    endings.map((ending) => `${path}${ending}`),
  );
}
