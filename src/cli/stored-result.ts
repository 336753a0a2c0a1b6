/** Results of evaluations on disk: a file of `RUN/evaluation/`, or a run folder, which stands for its result `after`. */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { DataFormatError, FileError } from "../errors.ts";
import { type EvaluationResult, evaluationResultSchema } from "../evaluation/result.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { fileError } from "../shared/files.ts";
import { excerpt } from "../shared/http.ts";

/** A result, bare or in the envelope of the run folder. */
const storedSchema = z.union([z.object({ result: evaluationResultSchema }), evaluationResultSchema]);

/** Reads the result at `path`. Throws `FileError` or `DataFormatError`. */
export async function readResult(path: string): Promise<EvaluationResult> {
  const file = (await isFolder(path)) ? await resultOfRun(path) : path;
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw fileError(`cannot read the result ${file}`, cause);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new DataFormatError(
      file,
      undefined,
      `expected JSON, the result of an evaluation, got ${excerpt(text, 60)}; name a file written by forager eval or train`,
      { cause },
    );
  }
  const stored = storedSchema.safeParse(json);
  if (!stored.success)
    throw new DataFormatError(
      file,
      undefined,
      "expected the result of an evaluation (contract, summary, items); name a file written by forager eval or train",
    );
  return "result" in stored.data ? stored.data.result : stored.data;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (cause) {
    throw fileError(`cannot read the result ${path}`, cause);
  }
}

async function resultOfRun(path: string): Promise<string> {
  const run = await RunFolder.open(path);
  const names = (await run.readEvaluations()).map(({ name }) => name);
  if (!names.includes("after"))
    throw new FileError(
      `${path} holds no result "after" (it has: ${names.join(", ") || "none"}); finish the training, or name a file of ${join(path, "evaluation")}`,
    );
  return join(path, "evaluation", "after.json");
}
