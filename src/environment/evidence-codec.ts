/**
 * The format of Search-R1 with evidence: before its answer the agent names the passages that it rests on, by the numbers
 * they were shown with (`<evidence> 1, 4 </evidence><answer> Paris </answer>`), and it may say that it does not know
 * (`<unknown></unknown>`). Passages are numbered through the episode, so that a number means one passage.
 */
import { assert } from "../errors.ts";
import type { Action, Codec } from "./action.ts";
import { neutralizer } from "./neutralize.ts";
import { searchR1Codec, searchR1Tags, withoutThinking } from "./search-r1-codec.ts";

const tags = [...searchR1Tags, "<evidence>", "</evidence>", "<unknown>", "</unknown>"];
const withoutTags = neutralizer(tags);

export const evidenceCodec: Codec = {
  ...searchR1Codec,
  name: "evidence",
  stopStrings: ["</search>", "</answer>", "</unknown>"],
  tags,
  numbersThroughEpisode: true,
  parse: parseTurn,
  render: (action) => {
    assert(
      action.type === "search" || action.type === "answer",
      `${action.type} is no action of this format`,
    );
    if (action.type === "search") return `<search> ${withoutTags(action.query).trim()}</search>`;
    if (action.abstains) return "<unknown></unknown>";
    const cited = action.cited === undefined ? "" : `<evidence> ${action.cited.join(", ")}</evidence>`;
    return `${cited}<answer> ${withoutTags(action.answer).trim()}</answer>`;
  },
  renderThought: (thought) => `<think> ${withoutTags(thought).trim()}</think>\n`,
  invalidMessage:
    "\nThat was not a valid action. To search, put the query between <search> and </search>. To answer, put the numbers of the passages that show it between <evidence> and </evidence>, then the answer between <answer> and </answer>. If nothing found answers the question, write <unknown></unknown>. Let me try again.\n",
};

function parseTurn(turn: string): Action {
  const visible = withoutThinking(turn);
  const unknownAt = visible.search(/<unknown>[^<]*<\/unknown>/);
  const actionAt = visible.search(/<(search|answer)>/);
  if (unknownAt >= 0 && (actionAt < 0 || unknownAt < actionAt))
    return { type: "answer", answer: "", abstains: true };
  const evidence = /<evidence>([^<]*)<\/evidence>/.exec(visible);
  const rest = evidence === null ? turn : turn.replace(evidence[0], "");
  const action = searchR1Codec.parse(rest);
  if (action.type !== "answer") return action;
  if (tags.some((tag) => action.answer.includes(tag))) return { type: "invalid", reason: "malformed" };
  return { ...action, cited: numbersIn(evidence?.[1] ?? "") };
}

/** Each number once, in order. */
function numbersIn(text: string): number[] {
  return [...new Set((text.match(/\d+/g) ?? []).map(Number))];
}
