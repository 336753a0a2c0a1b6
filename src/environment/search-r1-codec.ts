/**
 * The action format of Search-R1 (arXiv 2503.09516, section 3 and the published prompt): reasoning in
 * `<think>`, a query in `<search>`, an answer in `<answer>`, passages in `<information>`; plain text tags.
 *
 * The first complete action of a turn counts. Reasoning is removed first, so an action quoted inside it does not
 * act: from `<think>` to `</think>`, from an unclosed `<think>` to the end of the turn, and up to a `</think>`
 * that was never opened (the opening tag may stand in the prompt). Tags are read exactly: `<Search>` is text.
 */
import { assert } from "../errors.ts";
import type { Action, Codec } from "./action.ts";
import { neutralizer } from "./neutralize.ts";

export const searchR1Tags: readonly string[] = ["think", "search", "information", "answer"].flatMap(
  (name) => [`<${name}>`, `</${name}>`],
);

/** Removes every tag of the format, so that a rendered action holds exactly one. */
const withoutTags = neutralizer(searchR1Tags);

export const searchR1Codec: Codec = {
  name: "search-r1",
  stopStrings: ["</search>", "</answer>"],
  tags: searchR1Tags,
  parse: parseTurn,
  render: renderAction,
  renderThought: (thought) => `<think> ${withoutTags(thought).trim()}</think>\n`,
  renderObservation: (passages) => `\n\n<information>${passages.trim()}</information>\n\n`,
  invalidMessage:
    "\nThat was not a valid action. To search, put the query between <search> and </search>. To answer, put the answer between <answer> and </answer>. Actions inside <think> do not count. Let me try again.\n",
};

/** The same tags with the fewest tokens around them, for small models whose context is short. */
export const compactCodec: Codec = {
  ...searchR1Codec,
  name: "compact",
  renderThought: (thought) => `<think> ${withoutTags(thought).trim()}</think>`,
  renderObservation: (passages) => `<information>${passages.trimEnd()}</information>`,
  invalidMessage: "<information> invalid</information>",
};

const action = /<(search|answer)>([\s\S]*?)<\/\1>/;
const anyTag = new RegExp(searchR1Tags.join("|"));

function parseTurn(turn: string): Action {
  const visible = withoutThinking(turn);
  const match = action.exec(visible);
  if (match === null) {
    const isHidden = visible !== turn && action.test(turn);
    return { type: "invalid", reason: isHidden || anyActionTag.test(visible) ? "malformed" : "noAction" };
  }
  const content = (match[2] as string).trim();
  if (anyTag.test(content)) return { type: "invalid", reason: "malformed" };
  if (match[1] === "search")
    return content === "" ? { type: "invalid", reason: "emptyQuery" } : { type: "search", query: content };
  return content === "" ? { type: "invalid", reason: "emptyAnswer" } : { type: "answer", answer: content };
}

const anyActionTag = /<\/?(search|answer)>/;

/** A turn without its reasoning. */
export function withoutThinking(turn: string): string {
  let visible = "";
  let isThinking = false;
  for (const part of turn.split(/(<\/?think>)/)) {
    if (part === "<think>") isThinking = true;
    else if (part === "</think>") {
      if (!isThinking) visible = "";
      isThinking = false;
    } else if (!isThinking) visible += part;
  }
  return visible;
}

/**
 * A space before the content makes its first word the same token as in running text. Content loses its tags and
 * the white space around it; an empty one gives a turn that parses as invalid.
 */
function renderAction(value: Exclude<Action, { type: "invalid" }>): string {
  assert(value.type === "search" || value.type === "answer", `${value.type} is no action of this format`);
  const content = withoutTags(value.type === "search" ? value.query : value.answer).trim();
  return `<${value.type}> ${content}</${value.type}>`;
}
