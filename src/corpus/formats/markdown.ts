/**
 * Markdown to text: emphasis, links, images, fences, quotes and tags are reduced to what a reader sees; code stays as
 * it is. The title is that of the front matter (YAML), else the first heading. A reduction line by line, not a
 * parser: markup that spans lines beyond fences, comments and front matter is kept.
 */
import { type DocumentText, tidyText } from "./document.ts";

/** Title, text and front matter of a Markdown file. */
export async function readMarkdown(source: string): Promise<DocumentText> {
  const { matter, body } = await splitFrontMatter(source.replace(/\r\n?/g, "\n"));
  const { text, heading } = reduce(body);
  const { title, ...extra } = matter;
  const named = typeof title === "string" || typeof title === "number" ? String(title).trim() : "";
  return {
    title: named || heading,
    text: tidyText(text),
    ...(Object.keys(extra).length > 0 && { extra: { frontMatter: extra } }),
  };
}

async function splitFrontMatter(source: string): Promise<{ matter: Record<string, unknown>; body: string }> {
  const found = /^---[ \t]*\n([\s\S]*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)/.exec(source);
  if (found === null) return { matter: {}, body: source };
  const { parseDocument } = await import("yaml");
  const document = parseDocument(found[1] ?? "");
  const value = document.errors.length > 0 ? undefined : plainValue(() => document.toJS());
  // What is no mapping was a line between two paragraphs.
  if (value === null || typeof value !== "object" || Array.isArray(value))
    return { matter: {}, body: source };
  return { matter: value as Record<string, unknown>, body: source.slice(found[0].length) };
}

/** The value as JSON holds it; undefined for one that JSON cannot hold, such as an alias within its own anchor. */
function plainValue(read: () => unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(read()));
  } catch {
    return undefined;
  }
}

function reduce(body: string): { text: string; heading: string } {
  const lines: string[] = [];
  let fence: string | undefined;
  let heading = "";
  for (const line of withoutComments(body).split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined;
      else lines.push(line);
    } else if (mark !== undefined) fence = mark;
    else if (/^ {0,3}(=+|-{2,})\s*$/.test(line) && lines.at(-1)?.trim())
      heading ||= lines.at(-1)?.trim() ?? "";
    else if (!/^ {0,3}\[[^\]]+\]:\s/.test(line) && !isRule(line)) {
      const title = /^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$/.exec(line)?.[1];
      const reduced = reduceInline(title ?? reduceBlock(line));
      if (title !== undefined) heading ||= reduced.trim();
      lines.push(reduced);
    }
  }
  return { text: lines.join("\n"), heading };
}

/** Comments outside fences are rare inside them; both go. */
function withoutComments(body: string): string {
  return body.replace(/<!--[\s\S]*?-->/g, "");
}

/** A thematic break, or the line below the head of a table. */
function isRule(line: string): boolean {
  return (
    /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/.test(line) || /^\s*\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?\s*)?$/.test(line)
  );
}

/** Takes marks of quotes, lists and table edges off the start and end of a line. */
function reduceBlock(line: string): string {
  const unquoted = line.replace(/^(?: {0,3}> ?)+/, "");
  const unlisted = unquoted.replace(/^(\s*)(?:[-*+]\s+(?:\[[ xX]\]\s+)?|(\d{1,9}[.)]\s+))/, "$1$2");
  return /^\s*\|.*\|\s*$/.test(unlisted) ? unlisted.trim().slice(1, -1).trim() : unlisted;
}

/** Reduces what stands inside a line; code spans keep their content as it is. */
function reduceInline(line: string): string {
  return line
    .split(/(`+[^`]+`+)/)
    .map((part, i) => (i % 2 === 1 ? part.replace(/^`+|`+$/g, "") : reduceSpans(part)))
    .join("");
}

/** Spans are at most a thousand characters, so that no line takes time by its length squared. */
function reduceSpans(text: string): string {
  return text
    .replace(/!\[([^\]]{0,1000})\](?:\([^)]{0,1000}\)|\[[^\]]{0,1000}\])/g, "$1")
    .replace(/\[([^\]]{1,1000})\](?:\([^)]{0,1000}\)|\[[^\]]{0,1000}\])/g, "$1")
    .replace(/<(https?:[^>\s]+|[^>\s@]+@[^>\s]+)>/g, "$1")
    .replace(/<\/?[a-zA-Z][^>]{0,1000}>/g, "")
    .replace(/(\*{1,3}|~~)(?=\S)(.{1,1000}?)(?<=\S)\1/g, "$2")
    .replace(/(?<![\p{L}\p{N}])(_{1,3})(?=\S)(.{1,1000}?)(?<=\S)\1(?![\p{L}\p{N}])/gu, "$2")
    .replace(/\\([!-/:-@[-`{-~])/g, "$1")
    .replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => entities[name] ?? "");
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  nbsp: " ",
  "#39": "'",
};
