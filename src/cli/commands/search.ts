/** `forager search`: the best passages of an index for one query. */
import { visibleText } from "../../reporting/transcript.ts";
import { openIndex } from "../../retrieval/index-folder.ts";
import type { ScoredPassage } from "../../retrieval/retriever.ts";
import { defineCommand } from "../command.ts";

export const searchCommand = defineCommand({
  name: "search",
  summary: "Search an index.",
  args: [
    { name: "INDEX", doc: "a folder made by forager index" },
    { name: "QUERY", doc: "what to look for, in quotes" },
  ],
  options: {
    k: { type: "integer", short: "k", value: "N", least: 1, doc: "How many passages; default 3." },
  },
  examples: ['search index "capital of France"', 'search index "capital of France" -k 10 --json'],
  async run({ args, options: { k = 3 } }, io) {
    const [folder, query] = args as [string, string];
    const retriever = await openIndex(folder);
    const [found = []] = await retriever.retrieve([query], k, io.signal);
    if (found.length === 0) io.print("nothing found; try other words");
    found.forEach((result, rank) => {
      io.print(resultText(result, rank + 1));
    });
    const results = found.map(({ passage: { id, title, text }, score }) => ({ id, title, text, score }));
    return { json: { results } };
  },
});

function resultText({ passage, score }: ScoredPassage, rank: number): string {
  const text = visibleText(passage.text).replace(/\s+/g, " ");
  const shortened = text.length > 240 ? `${text.slice(0, 239)}…` : text;
  return `${rank}. ${visibleText(passage.title)} (${visibleText(passage.id)}, score ${score.toFixed(3)})\n   ${shortened}`;
}
