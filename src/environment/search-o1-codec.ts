/**
 * The format of Search-o1 (arXiv 2501.05366): reasoning runs freely, a query stands between markers of its own wherever it
 * is needed, and the answer stands in a box as mathematicians write it. A turn ends with its query or where the text ends.
 */
import { assert } from "../errors.ts";
import type { Action, Codec } from "./action.ts";
import { neutralizer } from "./neutralize.ts";

const marks = {
  query: ["<|begin_search_query|>", "<|end_search_query|>"],
  result: ["<|begin_search_result|>", "<|end_search_result|>"],
} as const;
const tags = [...marks.query, ...marks.result];
const withoutTags = neutralizer(tags);

export const searchO1Codec: Codec = {
  name: "search-o1",
  stopStrings: [marks.query[1]],
  tags,
  parse: parseTurn,
  finalCue: "\nNo searches are left. Finish with the answer in \\boxed{}.\n",
  render: (action) => {
    assert(
      action.type === "search" || action.type === "answer",
      `${action.type} is no action of this format`,
    );
    if (action.type === "answer") return `\\boxed{${withoutTags(action.answer).trim()}}`;
    return `${marks.query[0]} ${withoutTags(action.query).trim()}${marks.query[1]}`;
  },
  renderThought: (thought) => `${withoutTags(thought).trim()}\n`,
  renderObservation: (passages) => `\n\n${marks.result[0]}${passages.trim()}${marks.result[1]}\n\n`,
  invalidMessage: `\nThat was neither a search nor an answer. Put a query between ${marks.query.join(" and ")}, or the answer in \\boxed{}.\n`,
};

function parseTurn(turn: string): Action {
  const end = turn.indexOf(marks.query[1]);
  const start = end < 0 ? -1 : turn.lastIndexOf(marks.query[0], end);
  if (start >= 0) {
    const query = turn.slice(start + marks.query[0].length, end).trim();
    if (tags.some((tag) => query.includes(tag))) return { type: "invalid", reason: "malformed" };
    return query === "" ? { type: "invalid", reason: "emptyQuery" } : { type: "search", query };
  }
  const answer = boxedText(turn);
  if (answer === undefined)
    return { type: "invalid", reason: tags.some((tag) => turn.includes(tag)) ? "malformed" : "noAction" };
  return answer === "" ? { type: "invalid", reason: "emptyAnswer" } : { type: "answer", answer };
}

/** What the last closed box holds, the macro `\text` around it left out; undefined without one. */
function boxedText(turn: string): string | undefined {
  for (let at = turn.lastIndexOf(box); at >= 0; at = at === 0 ? -1 : turn.lastIndexOf(box, at - 1)) {
    const start = at + box.length;
    const length = closedLength(turn.slice(start));
    if (length === undefined) continue;
    const content = turn.slice(start, start + length).trim();
    return (/^\\text\{([^{}]*)\}$/.exec(content)?.[1] ?? content).trim();
  }
  return undefined;
}

const box = "\\boxed{";

/** Units of `text` before the brace that closes one opened before it; undefined where it stays open. */
function closedLength(text: string): number | undefined {
  let depth = 1;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "{") depth++;
    if (text[i] === "}" && --depth === 0) return i;
  }
  return undefined;
}
