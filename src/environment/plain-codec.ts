/**
 * A format without tags, for episodes without searches: the first line that is not empty is the answer. What small models
 * do that were never taught a format, so that they are not scored on tags.
 */
import { assert } from "../errors.ts";
import type { Action, Codec } from "./action.ts";

export const plainCodec: Codec = {
  name: "plain",
  stopStrings: ["\n"],
  tags: [],
  parse: parseLine,
  render: (value) => {
    assert(value.type === "search" || value.type === "answer", `${value.type} is no action of this format`);
    return ` ${(value.type === "search" ? value.query : value.answer).replace(/\s+/g, " ").trim()}\n`;
  },
  renderThought: () => "",
  renderObservation: (passages) => passages.trim(),
  invalidMessage: "",
};

/** A model that repeats what the prompt ends with means what follows. */
const label = /^answer:\s*/i;

function parseLine(turn: string): Action {
  const answer = (turn.trim().split("\n", 1)[0] as string).replace(label, "").trim();
  return answer === "" ? { type: "invalid", reason: "emptyAnswer" } : { type: "answer", answer };
}
