import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { type ChatMessage, renderChat } from "./chat-template.ts";

interface Golden {
  readonly templates: Readonly<Record<string, string>>;
  readonly chats: Readonly<
    Record<string, { readonly messages: readonly ChatMessage[]; readonly tools?: readonly object[] }>
  >;
  readonly cases: readonly {
    readonly template: string;
    readonly chat: string;
    readonly addGenerationPrompt: boolean;
    readonly expected: string | { readonly error: string };
  }[];
}

const path = fileURLToPath(new URL("../../test/golden/chat/chats.json", import.meta.url));
const golden = JSON.parse(readFileSync(path, "utf8")) as Golden;
const specialTokens = { bos_token: "<s>", eos_token: "</s>" };
const question = [{ role: "user", content: "Hi" }];

describe.each(Object.keys(golden.templates))("a template in the manner of %s", (name) => {
  const cases = golden.cases.filter(({ template }) => template === name);
  test.each(cases)("renders $chat as transformers does, prompt: $addGenerationPrompt", (one) => {
    const { messages, tools } = golden.chats[one.chat] as Golden["chats"][string];
    const format = { template: golden.templates[name] as string, specialTokens };
    const call = () =>
      renderChat(format, messages, { addGenerationPrompt: one.addGenerationPrompt, ...(tools && { tools }) });
    if (typeof one.expected !== "string") expect(call).toThrow(ConfigError);
    else expect(call()).toBe(one.expected);
  });
});

describe("a chat", () => {
  const render = (template: string, options: Partial<Parameters<typeof renderChat>[2]> = {}) =>
    renderChat({ template, specialTokens }, question, { addGenerationPrompt: false, ...options });

  test("of a template without generation prompt is refused where one is wanted", () => {
    const template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}";
    expect(render(template)).toBe("<user>Hi</user>");
    expect(() => render(template, { addGenerationPrompt: true })).toThrow(
      /the chat template has no generation prompt/,
    );
  });

  test("of a template whose questions end where answers begin needs no more", () => {
    const template =
      "{% for m in messages %}{% if m.role == 'user' %}Q: {{ m.content }} A:{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}";
    expect(render(template, { addGenerationPrompt: true })).toBe("Q: Hi A:");
  });

  test("of a template that refuses a question alone is judged by its own messages", () => {
    const template =
      "{% if messages|length < 2 %}{{ raise_exception('a system message first') }}{% endif %}{{ messages[1].content }}{% if add_generation_prompt %}>{% endif %}";
    const messages = [{ role: "system", content: "s" }, ...question];
    expect(renderChat({ template, specialTokens }, messages, { addGenerationPrompt: true })).toBe("Hi>");
  });

  test("of a template that is no Jinja, or that raises an exception, is a clear error", () => {
    expect(() => render("{% for %}")).toThrow(/the chat template cannot be read/);
    expect(() => render("{{ raise_exception('no users') }}")).toThrow(
      /the chat template refuses these messages: no users/,
    );
  });

  test("knows the date only when it is told", () => {
    const template = "{{ strftime_now('%d %b %Y, %B %m') }}";
    expect(render(template, { today: new Date(2026, 4, 7) })).toBe("07 May 2026, May 05");
    expect(() => render(template)).toThrow(/asks for the date/);
  });

  test("passes further variables on", () => {
    expect(render("{{ mood }}", { variables: { mood: "calm" } })).toBe("calm");
  });
});
