/**
 * What the simulating model is told, and how its documents are read back. Templates are texts with `{query}`,
 * `{count}`, `{words}` and `{hint}`; the wording is ours, the idea (useful or noisy documents on demand) ZeroSearch's.
 */

export const usefulTemplate = `You play a search engine. Write {count} short documents, as they would stand on web pages, that together
help to answer the query below. Each document is true, about {words} words long, and says something of its own.
{hint}
Query: {query}

Write nothing but the documents, each in this form, numbered from 1:
Doc 1: title of the page
text of the document
`;

export const noisyTemplate = `You play a search engine that found nothing good. Write {count} short documents, as they would stand on web
pages, that share words and subject with the query below but do not help to answer it: they are beside the point,
about something of a similar name, or outdated. None of them holds the answer. Each is about {words} words long.
{hint}
Query: {query}

Write nothing but the documents, each in this form, numbered from 1:
Doc 1: title of the page
text of the document
`;

/** Added when the reply to the same prompt could not be read. */
export const reminder = `
Your last reply could not be read. Begin with "Doc 1: " and a title, put the text on the next line, then go on with
"Doc 2: ", and write nothing else.
`;

const placeholders = ["query", "count", "words", "hint"] as const;
type Values = Readonly<Record<(typeof placeholders)[number], string>>;

/** `template` with its placeholders filled in; what a value holds is not filled in again. */
export function fillTemplate(template: string, values: Values): string {
  return template.replace(/\{(query|count|words|hint)\}/g, (_, name: keyof Values) => values[name]);
}

export interface WrittenDocument {
  readonly title: string;
  readonly text: string;
}

/** `Doc 1:`, `Document 2 (Title: x)`, `**Doc 3**:`, `[4]`, `5.` or `6)` at the start of a line. */
const heading =
  /^[ \t]*[*#_]*[ \t]*(?:(?:doc(?:ument)?[ \t]*\[?(\d{1,3})\]?)|\[(\d{1,3})\]|(\d{1,3})(?=[.)]))[*_]*[ \t]*[:.)\-–]?[*_]*[ \t]*/i;

/**
 * The numbered documents of a reply, at most `count`. A number counts only when it is the next one, so that lists
 * inside a document stay in it; thoughts (`<think>…</think>`) and what stands before document 1 are left out. Empty
 * when there is none.
 */
export function parseDocuments(reply: string, count: number): WrittenDocument[] {
  const answer = reply.replace(/<think>[\s\S]*?<\/think>/gi, "").replace(/^[\s\S]*<\/think>/i, "");
  const documents: string[][] = [];
  for (const line of answer.split(/\r?\n/)) {
    const match = heading.exec(line);
    const number = Number(match?.[1] ?? match?.[2] ?? match?.[3]);
    if (match && number === documents.length + 1) documents.push([line.slice(match[0].length)]);
    else documents.at(-1)?.push(line);
  }
  return documents
    .map(documentOf)
    .filter(({ text }) => text !== "")
    .slice(0, count);
}

/** The first line is the title when text follows; `(Title: x) text` is read as well. */
function documentOf([first = "", ...rest]: readonly string[]): WrittenDocument {
  const following = rest.join("\n").trim();
  const inBrackets = /^\(?title:[ \t]*"?([^")\n]*)"?\)[ \t]*/i.exec(first.trim());
  if (inBrackets) {
    const text = `${first.trim().slice(inBrackets[0].length)}\n${following}`.trim();
    return { title: (inBrackets[1] ?? "").trim(), text };
  }
  const title = first
    .replace(/^title:/i, "")
    .replace(/[*_]+$/, "")
    .trim();
  return following === "" ? { title: "", text: title } : { title, text: following.replace(/^text:\s*/i, "") };
}
