/** `forager index`: files of passages to an index folder that `search`, `eval` and recipes open. */

import { optionsFromOverrides } from "../../config/validate.ts";
import { readCorpora } from "../../corpus/read-corpora.ts";
import { saveIndex } from "../../retrieval/index-folder.ts";
import { bm25OptionsSchema, buildBm25Index } from "../../retrieval/lexical/bm25.ts";
import { defineCommand } from "../command.ts";
import { requireNewPath } from "../new-path.ts";
import { commandLine } from "../shell-word.ts";

export const indexCommand = defineCommand({
  name: "index",
  summary: "Index a corpus, so that it can be searched.",
  details:
    'A corpus is JSON lines: {"id","title","text"}, or {"id","contents"} with the title on the first line.',
  args: [{ name: "CORPUS", doc: "files of passages, indexed as one corpus", isRepeated: true }],
  options: {
    out: { type: "text", value: "FOLDER", isRequired: true, doc: "New folder for the index." },
    set: { type: "list", value: "KEY=VALUE", doc: "An option of the retriever, such as b=0.4; repeatable." },
  },
  examples: ["index passages.jsonl --out index", "index part-1.jsonl part-2.jsonl --out index --set k1=0.9"],
  async run({ args, options: { out, set } }, io) {
    const settings = optionsFromOverrides(bm25OptionsSchema, set);
    await requireNewPath(out, "choose another folder or remove it");
    const started = io.progress.now();
    let count = 0;
    async function* counted() {
      for await (const passage of readCorpora(args)) {
        io.signal.throwIfAborted();
        count++;
        yield passage;
      }
    }
    const index = await buildBm25Index(counted(), settings);
    await saveIndex(index, out);
    const seconds = (io.progress.now() - started) / 1000;
    io.print(`${count} passages are indexed in ${out} (${seconds.toFixed(1)} s)`);
    io.print(`next: ${commandLine("search", out, "a query")}`);
    return { json: { index: out, passages: count, seconds, ...index.identity } };
  },
});
