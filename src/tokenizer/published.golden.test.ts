// Published kinds of tokenizers against the Rust library `tokenizers`: test/golden/tokenizer/ holds files, texts with their
// ids, and the script that made them.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readTokenizer } from "./tokenizer-file.ts";

interface Golden {
  readonly cases: readonly {
    readonly text: string;
    readonly ids: readonly number[];
    readonly decoded: string;
  }[];
}

const folderOf = (kind: string): string =>
  fileURLToPath(new URL(`../../test/golden/tokenizer/${kind}`, import.meta.url));

/** Texts whose decoding differs; the test fails too when one comes to agree. */
const knownDivergences: Readonly<Record<string, readonly string[]>> = {
  mistral: ["\ufeffx", "x \ufeff y", "line\u0085's  \ufeffnext", "a \u0085\u200b\u0085 b\ufeff\ufeff c"],
};

describe.each(["smollm2", "llama3", "qwen2", "mistral"])("a tokenizer of the kind %s", (kind) => {
  const read = async () => ({
    tokenizer: await readTokenizer(folderOf(kind)),
    cases: (JSON.parse(await readFile(join(folderOf(kind), "cases.json"), "utf8")) as Golden).cases,
  });

  test("gives the ids of the Rust library for every nasty text", async () => {
    const { tokenizer, cases } = await read();
    expect(cases.length).toBeGreaterThan(80);
    for (const { text, ids } of cases) expect({ text, ids: tokenizer.encode(text) }).toEqual({ text, ids });
  });

  test("decodes to the texts of the Rust library", async () => {
    const { tokenizer, cases } = await read();
    const different = cases.filter(({ ids, decoded }) => tokenizer.decode(ids) !== decoded);
    expect(different.map(({ text }) => text)).toEqual(knownDivergences[kind] ?? []);
  });

  test("knows which token, if any, begins a text", async () => {
    const { tokenizer } = await read();
    const [begin] = tokenizer.encode("<s>");
    expect(tokenizer.beginOfTextId).toBe(kind === "llama3" || kind === "mistral" ? begin : undefined);
  });
});
