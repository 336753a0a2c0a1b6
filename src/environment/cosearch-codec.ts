/**
 * The action format of CoSearch's agent (arXiv 2604.17555, appendix A.1): reasoning in `<reason>`, a search as a JSON call in
 * `<tool_call>{"name":"search","arguments":{"query":"…"}}</tool_call>`, an answer in `<answer>`, passages in
 * `<tool_response>`. As in the released parser only the tool `search` counts, further keys are let pass, and arguments that
 * are no object are none.
 *
 * The first complete action of a turn counts; what stands in `<reason>` does not act. Where the released loop ends the
 * episode at a turn without a call, this one answers with a message, as for every codec.
 */
import type { Action, Codec } from "./action.ts";
import { neutralizer } from "./neutralize.ts";

const tags: readonly string[] = ["reason", "tool_call", "tool_response", "answer"].flatMap((name) => [
  `<${name}>`,
  `</${name}>`,
]);
const withoutTags = neutralizer(tags);
const anyTag = new RegExp(tags.join("|"));

export const coSearchCodec: Codec = {
  name: "cosearch",
  stopStrings: ["</tool_call>", "</answer>"],
  tags,
  parse: parseTurn,
  render: (action) =>
    action.type === "search" ? renderCall(action.query) : `<answer>${renderText(action)}</answer>`,
  renderThought: (thought) => `<reason>${withoutTags(thought).trim()}</reason>\n`,
  renderObservation: (passages) => `\n\n<tool_response>\n${passages.trim()}\n</tool_response>\n\n`,
  invalidMessage:
    '\nThat was not a valid action. To search, write <tool_call>{"name":"search","arguments":{"query":"..."}}</tool_call>. To answer, put the answer between <answer> and </answer>. Actions inside <reason> do not count. Let me try again.\n',
};

const reasoning = /<reason>[\s\S]*?(<\/reason>|$)/g;
const action = /<(tool_call|answer)>([\s\S]*?)<\/\1>/;
const anyActionTag = /<\/?(tool_call|answer)>/;

function parseTurn(turn: string): Action {
  const match = action.exec(turn.replace(reasoning, ""));
  if (match === null) return { type: "invalid", reason: anyActionTag.test(turn) ? "malformed" : "noAction" };
  const content = (match[2] as string).trim();
  if (anyTag.test(content)) return { type: "invalid", reason: "malformed" };
  if (match[1] === "answer")
    return content === "" ? { type: "invalid", reason: "emptyAnswer" } : { type: "answer", answer: content };
  const query = queryOf(content);
  if (query === undefined) return { type: "invalid", reason: "malformed" };
  return query === "" ? { type: "invalid", reason: "emptyQuery" } : { type: "search", query };
}

/** The query of a call; empty where it has none, undefined where it is no call of `search`. */
function queryOf(content: string): string | undefined {
  let call: unknown;
  try {
    call = JSON.parse(content);
  } catch {
    return undefined;
  }
  const { name, arguments: given } = (call ?? {}) as {
    readonly name?: unknown;
    readonly arguments?: unknown;
  };
  if (name !== "search") return undefined;
  const query =
    typeof given === "object" && given !== null ? (given as { query?: unknown }).query : undefined;
  return typeof query === "string" ? query.trim() : "";
}

function renderCall(query: string): string {
  const call = { name: "search", arguments: { query: withoutTags(query).trim() } };
  return `<tool_call>${JSON.stringify(call)}</tool_call>`;
}

function renderText(value: Exclude<Action, { type: "invalid" }>): string {
  return value.type === "answer" ? withoutTags(value.answer).trim() : "";
}
