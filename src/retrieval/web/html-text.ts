/**
 * The readable text of an HTML page: blocks on lines of their own, without scripts, styles, navigation and forms. It
 * does not judge what the main part of a page is beyond these elements.
 */

/** Elements whose content is not for reading. */
const skipped = new Set([
  ..."script style noscript template svg head nav footer aside form button select iframe object".split(" "),
]);
/** Elements that end a line; the text inside them flows. */
const blocks = new Set([
  ..."p div section article main header h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table tr blockquote pre br hr".split(
    " ",
  ),
  ..."figure figcaption address details summary td th".split(" "),
]);

/** Title and text of a page; broken markup is read as far as it goes. */
export async function htmlText(source: string): Promise<{ title: string; text: string }> {
  const { Parser } = await import("htmlparser2");
  const parts: string[] = [];
  let title = "";
  let isTitle = false;
  let skipping = 0;
  const parser = new Parser(
    {
      onopentag: (name) => {
        if (name === "title" && title === "") isTitle = true;
        if (skipped.has(name)) skipping++;
        else if (blocks.has(name)) parts.push("\n");
      },
      ontext: (text) => {
        if (isTitle) title += text;
        else if (skipping === 0) parts.push(text.replace(/\s+/g, " "));
      },
      onclosetag: (name) => {
        if (name === "title") isTitle = false;
        if (skipped.has(name)) skipping--;
        else if (blocks.has(name)) parts.push("\n");
      },
    },
    { decodeEntities: true },
  );
  parser.end(source);
  const lines = parts.join("").split("\n");
  const text = lines
    .map((line) => line.replace(/\s+/g, " ").trim())
    .filter((line) => line !== "")
    .join("\n");
  return { title: title.replace(/\s+/g, " ").trim(), text };
}

/**
 * The part of `text` of at most `maxCharacters` that holds most of the different words of `wanted` (a query and a
 * snippet); the earliest of equals. Whole words, and `text` itself when it fits.
 */
export function bestWindow(text: string, wanted: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const words = new Set(wanted.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);
  const hits: { readonly word: string; readonly at: number }[] = [];
  for (const match of text.matchAll(/[\p{L}\p{N}]{2,}/gu)) {
    const word = match[0].toLowerCase();
    if (words.has(word)) hits.push({ word, at: match.index });
  }
  // What is left is for the words before the first and for whole words at both ends.
  const room = Math.floor(maxCharacters * 0.85);
  const counts = new Map<string, number>();
  let best = { start: 0, distinct: 0 };
  let first = 0;
  for (const { word, at } of hits) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
    for (let hit = hits[first]; hit && at + word.length - hit.at > room; hit = hits[++first]) {
      const left = (counts.get(hit.word) ?? 0) - 1;
      if (left > 0) counts.set(hit.word, left);
      else counts.delete(hit.word);
    }
    if (counts.size > best.distinct) best = { start: hits[first]?.at ?? at, distinct: counts.size };
  }
  // A tenth before the first word, so that it does not stand without its sentence.
  const start = Math.max(
    0,
    Math.min(best.start - Math.floor(maxCharacters / 10), text.length - maxCharacters),
  );
  const from = start === 0 ? 0 : nextSpace(text, start);
  const slice = text.slice(from, from + maxCharacters);
  const isAtEnd = from + maxCharacters >= text.length;
  return (isAtEnd ? slice : slice.replace(/\s\S*$/, "")).trim();
}

function nextSpace(text: string, from: number): number {
  const space = text.slice(from, from + 40).search(/\s/);
  return space < 0 ? from : from + space + 1;
}
