import { expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { sha256 } from "../shared/hash.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { type EnvironmentOptions, environmentOptionsSchema } from "./environment-options.ts";
import { openingHash, openingText, openingTokens } from "./opening.ts";

const chatMl =
  "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
const taught = (template: string) => ({ chat: { template, specialTokens: {} } });
const content = { question: "Why?", information: "" };

function options(changed: Partial<EnvironmentOptions> = {}): EnvironmentOptions {
  return environmentOptionsSchema.parse({ prompt: "bare", ...changed });
}

test("the prompt is one message of the user where the model knows chats, else plain text", async () => {
  expect(await openingText(options(), content, taught(chatMl))).toBe(
    "<|im_start|>user\nQuestion: Why?<|im_end|>\n<|im_start|>assistant\n",
  );
  expect(await openingText(options(), content, {})).toBe("Question: Why?\n");
  expect(await openingText(options(), content, undefined)).toBe("Question: Why?\n");
  expect(await openingText(options({ chat: false }), content, taught(chatMl))).toBe("Question: Why?\n");
});

test("examples are earlier turns of a chat", async () => {
  const examples = [{ question: "Who", answer: "Me" }];
  const direct = options({ mode: "direct", prompt: "answer", codec: "plain", examples });
  const asked = (question: string): string =>
    `<|im_start|>user\nAnswer the question with a few words and nothing else.\nQuestion: ${question}\nAnswer:<|im_end|>\n<|im_start|>assistant\n`;
  expect(await openingText(direct, content, taught(chatMl))).toBe(
    `${asked("Who?")}Me<|im_end|>\n${asked("Why?")}`,
  );
});

test("a template that is wanted and missing, or opens no turn of the assistant, is an error that says so", async () => {
  const wanted = options({ chat: true });
  expect(await openingText(wanted, content, taught(chatMl))).toContain("assistant");
  await expect(openingText(wanted, content, {})).rejects.toThrow(ConfigError);
  await expect(openingText(wanted, content, undefined)).rejects.toThrow(/the model has no chat template/);
  const silent = taught("{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}");
  await expect(openingText(options(), content, silent)).rejects.toThrow(/no generation prompt/);
});

test("a template that asks for the date is told the recipe's day, never today's", async () => {
  const dated = taught(`{{ strftime_now('%d %b %Y') }} ${chatMl}`);
  await expect(openingText(options(), content, dated)).rejects.toThrow(/say which day it is/);
  expect(await openingText(options({ today: "2026-01-31" }), content, dated)).toMatch(/^31 Jan 2026 /);
});

test("what is hashed is what is shown, the chat template included", async () => {
  expect(await openingHash(options(), undefined)).toBe(sha256("Question: {question}\n"));
  expect(await openingHash(options(), taught(chatMl))).toBe(
    sha256("<|im_start|>user\nQuestion: {question}<|im_end|>\n<|im_start|>assistant\n"),
  );
  const rag = await openingHash(options({ mode: "rag" }), undefined);
  expect(rag).toBe(sha256("{information}\nQuestion: {question}\n"));
  const examples = [{ question: "a", answer: "b" }];
  expect(await openingHash(options({ mode: "rag", examples }), undefined)).not.toBe(rag);
});

test("the id that begins a text comes first, once", () => {
  const tokenizer = trainBytePair([], { vocabularySize: 270, specialTokens: ["<s>"] });
  const [begin] = tokenizer.encode("<s>") as [number];
  const known = { ...tokenizer, beginOfTextId: begin, encode: tokenizer.encode.bind(tokenizer) } as never;
  expect(openingTokens("a", tokenizer)).toEqual(tokenizer.encode("a"));
  expect(openingTokens("a", known)).toEqual([begin, ...tokenizer.encode("a")]);
  expect(openingTokens("<s>a", known)).toEqual([begin, ...tokenizer.encode("a")]);
});
