/**
 * The action format of a search planner, which searches and hands over but never answers (AI-SearchPlanner, arXiv
 * 2508.20368; the paper names the two tools, the grammar is ours):
 *
 *   <think> reasoning </think>       read past, as in Search-R1's format
 *   <search> one sub-query           a call of the tool search: one sub-query a line, blank lines and repetitions left out
 *   another one </search>
 *   <call_answer_llm>                a call of the tool call_answer_llm: ends the episode
 *
 * The first complete action of a turn counts, and an action quoted within reasoning is none.
 */
import { assert } from "../errors.ts";
import type { Action, Codec } from "./action.ts";
import { neutralizer } from "./neutralize.ts";
import { withoutThinking } from "./search-r1-codec.ts";

const handOver = "<call_answer_llm>";

export const plannerTags: readonly string[] = ["think", "search", "information", "call_answer_llm"].flatMap(
  (name) => [`<${name}>`, `</${name}>`],
);

const withoutTags = neutralizer(plannerTags);

export const plannerCodec: Codec = {
  name: "planner",
  stopStrings: ["</search>", handOver],
  tags: plannerTags,
  parse: parseTurn,
  render: renderAction,
  renderThought: (thought) => `<think> ${withoutTags(thought).trim()}</think>\n`,
  renderObservation: (passages) => `\n\n<information>${passages.trim()}</information>\n\n`,
  invalidMessage: `\nThat was not a valid action. To search, put one query or several, each on a line of its own, between <search> and </search>. To hand over, write ${handOver}. Actions inside <think> do not count. Let me try again.\n`,
};

/** The same tags with the fewest tokens around them, for small models whose context is short. */
export const compactPlannerCodec: Codec = {
  ...plannerCodec,
  name: "planner-compact",
  renderThought: (thought) => `<think> ${withoutTags(thought).trim()}</think>`,
  renderObservation: (passages) => `<information>${passages.trimEnd()}</information>`,
  invalidMessage: "<information> invalid</information>",
};

const action = /<search>([\s\S]*?)<\/search>|<call_answer_llm>/;
const anyTag = new RegExp(plannerTags.join("|"));
const anyActionTag = /<\/?(search|call_answer_llm)>/;

function parseTurn(turn: string): Action {
  const visible = withoutThinking(turn);
  const match = action.exec(visible);
  if (match === null) {
    const isHidden = visible !== turn && action.test(turn);
    return { type: "invalid", reason: isHidden || anyActionTag.test(visible) ? "malformed" : "noAction" };
  }
  const content = match[1];
  if (content === undefined) return { type: "callGenerator" };
  if (anyTag.test(content)) return { type: "invalid", reason: "malformed" };
  const queries = [...new Set(content.split("\n").map((line) => line.trim()))].filter((line) => line !== "");
  return queries.length === 0 ? { type: "invalid", reason: "emptyQuery" } : { type: "searches", queries };
}

/** A space before each query makes its first word the same token as in running text. */
function renderAction(value: Exclude<Action, { type: "invalid" }>): string {
  if (value.type === "callGenerator") return handOver;
  assert(value.type !== "answer", "a planner does not answer");
  const queries = value.type === "search" ? [value.query] : value.queries;
  const lines = queries.map((query) => ` ${withoutTags(query.replace(/\s+/g, " ")).trim()}`);
  return `<search>${lines.join("\n")}</search>`;
}
