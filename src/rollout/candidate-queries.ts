/**
 * Queries that may find the passages a question still lacks, made only of what the policy has seen by then: the question
 * itself, titles of gold passages that the question or an observation mentions, such a title with words of the question, and
 * names in the question. A title that was seen nowhere is no candidate: asking for it would teach to guess.
 */
import { mentions, spaced } from "./mentions.ts";

export interface Evidence {
  readonly question: string;
  /** What the environment has shown so far. */
  readonly seen: string;
  /** Titles of the gold passages that are not found yet, as far as they are known. */
  readonly missingTitles: readonly string[];
}

/** Words of the question that are put after a title. */
const lastWords = 4;

/** Candidates in the order of preference, without repeats. */
export function candidateQueries({ question, seen, missingTitles }: Evidence): string[] {
  const read = `${question}\n${seen}`;
  const candidates = [question.trim()];
  for (const title of missingTitles) {
    const name = [title, withoutParentheses(title)].find((form) => mentions(read, form));
    if (name === undefined) continue;
    const words = contentWords(question, name);
    candidates.push(name, `${name} ${words.slice(-lastWords).join(" ")}`, `${name} ${words.join(" ")}`);
  }
  candidates.push(...namesIn(question));
  return [...new Set(candidates.map((query) => query.trim()).filter((query) => query !== ""))];
}

/** `Emma (novel)` is spoken of as `Emma`. */
function withoutParentheses(title: string): string {
  return title.replace(/\s*\([^)]*\)\s*$/, "");
}

const functionWords = new Set(
  "a an the of in on at to and or is are was were be been do does did has have had what which who whom whose when where why how that this these those it its he she they his her their by for from with as into than also both same".split(
    " ",
  ),
);

/** Words of a question that say something beyond `name`. */
function contentWords(question: string, name: string): string[] {
  const known = spaced(name);
  return question
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "" && !functionWords.has(word.toLowerCase()) && !known.includes(spaced(word)));
}

const capital = "\\p{Lu}[\\p{L}\\p{N}'’.-]*";
const joining = "(?:of|the|and|de|in|for|to|la|von|van|der|&|\\d+)";
const properName = new RegExp(`${capital}(?:\\s+(?:${joining}\\s+)*${capital}|\\s+\\d+)*`, "gu");

/** What stands in quotes, and runs of capitalised words without the question word at their start. */
function namesIn(question: string): string[] {
  const quoted = [...question.matchAll(/["“]([^"”]+)["”]/g)].map((match) => match[1] as string);
  const capitalised = [...question.matchAll(properName)].map(([name]) => {
    const [first = "", ...rest] = name.split(/\s+/);
    return functionWords.has(first.toLowerCase()) ? rest.join(" ") : name;
  });
  return [...quoted, ...capitalised];
}
