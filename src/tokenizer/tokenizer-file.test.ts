import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DataFormatError, FileError } from "../errors.ts";
import { trainBytePair } from "./byte-pair-training.ts";
import { readTokenizer, writeTokenizer } from "./tokenizer-file.ts";

const tags = ["<search>", "</search>"];
const texts = [
  "Nice Airport lies in France.",
  "Paris is the capital of France, it's large.",
  "naïve 😀 日本 日本",
];
const tokenizer = trainBytePair([...texts, ...texts], { vocabularySize: 320, specialTokens: tags });

const nasty = [
  ...texts,
  "",
  "  two  spaces ",
  "a<search> q </search>b",
  "<|endoftext|>x<|padding|>",
  "it's they'll 'tis",
  "\n\n\t x",
  "👩‍👩‍👧 ½ Ⅷ 12345",
  "x\u00a0y\u2003z\u200b",
  "a".repeat(100),
  "</search",
];

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-tokenizer-"));
});
afterEach(() => rm(folder, { recursive: true }));

const readJson = async (name: string) => JSON.parse(await readFile(join(folder, name), "utf8"));
const writeJson = (name: string, value: unknown) => writeFile(join(folder, name), JSON.stringify(value));

test("what was written is read back as the same tokenizer", async () => {
  await writeTokenizer(folder, tokenizer);
  const read = await readTokenizer(folder);
  expect(read.hash).toBe(tokenizer.hash);
  expect(nasty.map((text) => read.encode(text))).toEqual(nasty.map((text) => tokenizer.encode(text)));
});

test("the JavaScript library of Hugging Face reads the file and gives equal ids and texts", async () => {
  await writeTokenizer(folder, tokenizer);
  const library = new LibraryTokenizer(
    await readJson("tokenizer.json"),
    await readJson("tokenizer_config.json"),
  );
  for (const text of nasty) {
    const ids = tokenizer.encode(text);
    expect(library.encode(text).ids).toEqual(ids);
    if (ids.length > 0) expect(library.decode(ids)).toBe(tokenizer.decode(ids));
  }
});

test("a tokenizer of another kind is read through the library", async () => {
  await writeTokenizer(folder, tokenizer);
  const file = await readJson("tokenizer.json");
  await writeJson("tokenizer.json", { ...file, normalizer: { type: "Lowercase" } });
  const read = await readTokenizer(folder);
  expect(read.decode(read.encode("PARIS<search>X"))).toBe("paris<search>x");
  expect(read.decode([])).toBe("");
  expect(read.encode("")).toEqual([]);
  expect(read).toMatchObject({ vocabularySize: tokenizer.vocabularySize, endOfTextId: 0, paddingId: 1 });
  expect(read.specialTokens).toEqual(tokenizer.specialTokens);
  expect(read.hash).not.toBe(tokenizer.hash);
});

test("a tokenizer of another kind is written as it was read", async () => {
  await writeTokenizer(folder, tokenizer);
  const file = { ...(await readJson("tokenizer.json")), normalizer: { type: "Lowercase" } };
  const config = { eos_token: { content: "</search>" }, chat_template: "{{ messages }}" };
  await writeJson("tokenizer.json", file);
  await writeJson("tokenizer_config.json", config);
  const read = await readTokenizer(folder);
  const copy = join(folder, "copy");
  await writeTokenizer(copy, read);
  expect(await readJson("copy/tokenizer.json")).toEqual(file);
  expect(await readJson("copy/tokenizer_config.json")).toMatchObject({
    eos_token: "</search>",
    chat_template: "{{ messages }}",
  });
  expect((await readTokenizer(copy)).hash).toBe(read.hash);
});

test("a tokenizer that transformers 5 would make anew is written so that it is read as it is", async () => {
  await writeTokenizer(folder, tokenizer);
  await writeJson("tokenizer.json", {
    ...(await readJson("tokenizer.json")),
    normalizer: { type: "Lowercase" },
  });
  const classOf = async (tokenizer_class: string): Promise<string> => {
    await writeJson("tokenizer_config.json", { eos_token: "</search>", tokenizer_class });
    await writeTokenizer(join(folder, "copy"), await readTokenizer(folder));
    return (await readJson("copy/tokenizer_config.json")).tokenizer_class;
  };
  expect(await classOf("LlamaTokenizer")).toBe("PreTrainedTokenizerFast");
  expect(await classOf("LlamaTokenizerFast")).toBe("PreTrainedTokenizerFast");
  expect(await classOf("Qwen2Tokenizer")).toBe("Qwen2Tokenizer");
});

test("without a padding token, end of text pads; without a configuration a usual token ends the text", async () => {
  await writeTokenizer(folder, tokenizer);
  const file = await readJson("tokenizer.json");
  await writeJson("tokenizer.json", { ...file, normalizer: { type: "NFC" } });
  await rm(join(folder, "tokenizer_config.json"));
  expect(await readTokenizer(folder)).toMatchObject({ endOfTextId: 0, paddingId: 0 });
  await writeJson("tokenizer_config.json", { eos_token: { content: "</search>" } });
  expect(await readTokenizer(folder)).toMatchObject({ endOfTextId: 3, paddingId: 3 });
});

test("all ids that end a text are known, and written again", async () => {
  await writeTokenizer(folder, tokenizer);
  const file = await readJson("tokenizer.json");
  await writeJson("tokenizer.json", { ...file, normalizer: { type: "NFC" } });
  await writeJson("generation_config.json", { eos_token_id: [0, 3], temperature: 0.7 });
  const read = await readTokenizer(folder);
  expect(read).toMatchObject({ endOfTextId: 0, furtherEndIds: [3] });
  await writeTokenizer(join(folder, "copy"), read);
  expect(await readTokenizer(join(folder, "copy"))).toMatchObject({ endOfTextId: 0, furtherEndIds: [3] });
  await writeJson("generation_config.json", { eos_token_id: 0 });
  expect((await readTokenizer(folder)).furtherEndIds).toBeUndefined();
  await writeJson("generation_config.json", { eos_token_id: "x" });
  await expect(readTokenizer(folder)).rejects.toThrow(/generation_config\.json: /);
});

test("without a generation_config.json, the ids that end a text are those of the model, as in transformers", async () => {
  await writeTokenizer(folder, tokenizer);
  const file = await readJson("tokenizer.json");
  await writeJson("tokenizer.json", { ...file, normalizer: { type: "NFC" } });
  await writeJson("config.json", { eos_token_id: [0, 3] });
  expect(await readTokenizer(folder)).toMatchObject({ endOfTextId: 0, furtherEndIds: [3] });
  await writeJson("generation_config.json", { eos_token_id: 4 });
  expect(await readTokenizer(folder)).toMatchObject({ endOfTextId: 0, furtherEndIds: [4] });
});

test("a template in a file of its own wins over the one in the configuration, and one by name is found", async () => {
  await writeTokenizer(folder, tokenizer);
  const file = await readJson("tokenizer.json");
  await writeJson("tokenizer.json", { ...file, normalizer: { type: "NFC" } });
  const named = [
    { name: "tool_use", template: "tools" },
    { name: "default", template: "plain" },
  ];
  await writeJson("tokenizer_config.json", { bos_token: "<search>", chat_template: named });
  const { chat } = await readTokenizer(folder);
  expect(chat).toEqual({
    template: "plain",
    specialTokens: { bos_token: "<search>", eos_token: "<|endoftext|>" },
  });
  await writeFile(join(folder, "chat_template.jinja"), "own file");
  expect((await readTokenizer(folder)).chat?.template).toBe("own file");
});

test("a chat template that was added to our own files is used", async () => {
  await writeTokenizer(folder, tokenizer);
  await writeJson("tokenizer_config.json", {
    ...(await readJson("tokenizer_config.json")),
    chat_template: "x",
  });
  const read = await readTokenizer(folder);
  expect(read.chat?.template).toBe("x");
  expect(read.endOfTextId).toBe(tokenizer.endOfTextId);
  expect(read.encode("the reon 12 😀")).toEqual(tokenizer.encode("the reon 12 😀"));
});

test("a missing, broken or foreign file is one clear error", async () => {
  await expect(readTokenizer(folder)).rejects.toThrow(FileError);
  await writeFile(join(folder, "tokenizer.json"), "{");
  await expect(readTokenizer(folder)).rejects.toThrow(DataFormatError);
  await writeJson("tokenizer.json", { model: 1 });
  await expect(readTokenizer(folder)).rejects.toThrow(/tokenizer\.json: expected a Hugging Face tokenizer/);
  await writeTokenizer(folder, tokenizer);
  const file = await readJson("tokenizer.json");
  await writeJson("tokenizer.json", { ...file, normalizer: { type: "NFC" } });
  await writeJson("tokenizer_config.json", { eos_token: "<none>" });
  await expect(readTokenizer(folder)).rejects.toThrow(/names "<none>", which has no id/);
  await writeJson("tokenizer_config.json", { eos_token: 5 });
  await expect(readTokenizer(folder)).rejects.toThrow(
    /tokenizer_config\.json: .*Invalid input.*\n.*at eos_token/,
  );
  await writeJson("tokenizer_config.json", {});
  await writeJson("tokenizer.json", { ...file, added_tokens: 4 });
  await expect(readTokenizer(folder)).rejects.toThrow(/expected array, received number\n.*at added_tokens/);
});
