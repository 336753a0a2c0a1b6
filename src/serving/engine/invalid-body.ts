/** A body that is not as the protocol has it (422), told as FastAPI does: a list of what is wrong and where. */
import type { z } from "zod";
import { HttpError } from "../http-error.ts";

export interface BodyIssue {
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
}

export class InvalidBody extends HttpError {
  readonly issues: readonly BodyIssue[];

  constructor(issues: readonly BodyIssue[]) {
    super(422, {
      expected: "a body as the protocol has it",
      got: issues.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; "),
      advice: "correct it",
    });
    this.issues = issues;
  }
}

export function invalidBody(path: readonly (string | number)[], msg: string): InvalidBody {
  return new InvalidBody([{ type: "value_error", loc: ["body", ...path], msg }]);
}

/** Most issues that are told. */
const mostIssues = 20;

export function bodyIssues(error: z.ZodError): InvalidBody {
  return new InvalidBody(
    error.issues.slice(0, mostIssues).map(({ code, path, message }) => ({
      type: code,
      loc: ["body", ...path.map((part) => (typeof part === "number" ? part : String(part)))],
      msg: message,
    })),
  );
}
