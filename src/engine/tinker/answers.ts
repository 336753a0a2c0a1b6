/** Answers of a server, held against the schemas of the protocol before anything is done with them. */
import { z } from "zod";
import type { Connection } from "./connection.ts";
import { type AnswerPath, answerSchemas, type WireAnswer } from "./wire.ts";

/** `answer` as the protocol has it. Throws `EngineError` (`malformed`) that says where it differs. */
export function readAnswer<Path extends AnswerPath>(
  connection: Connection,
  path: Path,
  answer: unknown,
): WireAnswer<Path> {
  const parsed = answerSchemas[path].safeParse(answer);
  if (parsed.success) return parsed.data as WireAnswer<Path>;
  const problem = z.prettifyError(parsed.error).replace(/\s+/g, " ").slice(0, 300);
  throw connection.error({ path }, `expected another answer: ${problem}; check engine.profile`, "malformed");
}
