/**
 * The format of IRCoT (arXiv 2212.10509): a turn is one sentence of reasoning on a line of its own. The sentence itself is
 * the query of the next search, unless it says what the answer is; before the last turn the environment begins that
 * sentence, so that a chain which never came to its end still gives an answer.
 */
import { assert } from "../errors.ts";
import type { Action, Codec } from "./action.ts";
import { neutralizer } from "./neutralize.ts";

const tags = ["<information>", "</information>"];
const withoutTags = neutralizer(tags);

export const ircotCodec: Codec = {
  name: "ircot",
  stopStrings: ["\n"],
  tags,
  parse: parseSentence,
  parseFinal: (turn) => {
    const action = parseSentence(turn);
    return action.type === "search" ? answerOf(action.query) : action;
  },
  finalCue: "So the answer is:",
  render: (action) => {
    assert(
      action.type === "search" || action.type === "answer",
      `${action.type} is no action of this format`,
    );
    const text = action.type === "search" ? action.query : `So the answer is: ${action.answer}`;
    return ` ${withoutTags(text).replace(/\s+/g, " ").trim()}\n`;
  },
  renderThought: () => "",
  renderObservation: (passages) => `<information>${passages.trim()}</information>\n`,
  invalidMessage: "That was no sentence. Write the next sentence of the reasoning.\n",
};

const conclusion = /\banswer is\b:?([\s\S]*)$/i;

function parseSentence(turn: string): Action {
  const sentence = turn.trim();
  if (sentence === "") return { type: "invalid", reason: "noAction" };
  if (tags.some((tag) => sentence.includes(tag))) return { type: "invalid", reason: "malformed" };
  const concluded = conclusion.exec(sentence);
  return concluded === null ? { type: "search", query: sentence } : answerOf(concluded[1] as string);
}

function answerOf(text: string): Action {
  const answer = text.trim().replace(/\.$/, "").trim();
  return answer === "" ? { type: "invalid", reason: "emptyAnswer" } : { type: "answer", answer };
}
