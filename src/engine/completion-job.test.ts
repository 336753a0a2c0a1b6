import { describe, expect, test } from "vitest";
import type { SamplingOptions } from "../rollout/policy.ts";
import { byteCharacters } from "../tokenizer/byte-alphabet.ts";
import { CompletionJob } from "./completion-job.ts";
import { tinyTokenizer } from "./engine.fixture.ts";

const options: SamplingOptions = { maxTokens: 50, temperature: 0, topP: 1, topK: 0, stop: [] };
const { vocabularySize, endOfTextId } = tinyTokenizer;

/** The id of each byte of a text, so that no two characters share a token. */
function byteIds(text: string): number[] {
  return Array.from(Buffer.from(text), (byte) =>
    tinyTokenizer.vocabulary.indexOf(byteCharacters[byte] as string),
  );
}

function jobOf(prompt: string, changes: Partial<SamplingOptions> = {}, contextLength = 1000): CompletionJob {
  const context = { text: prompt, seed: 1 };
  return new CompletionJob(context, { ...options, ...changes }, { tokenizer: tinyTokenizer, contextLength });
}

/** Says tokens until the job is done; the log-probability of each is -0.5 and lower elsewhere. */
function say(job: CompletionJob, tokens: readonly number[]): CompletionJob {
  for (const token of tokens) {
    if (job.finishReason !== undefined) break;
    job.advance(new Float32Array(vocabularySize).fill(-9).fill(-0.5, token, token + 1));
  }
  return job;
}

describe("CompletionJob", () => {
  test("holds the context's tokens, or those of its text", () => {
    expect(jobOf("the river").tokens).toEqual(tinyTokenizer.encode("the river"));
    const context = { text: "other", tokens: [5, 6], seed: 1, episode: "e" };
    const job = new CompletionJob(context, options, { tokenizer: tinyTokenizer, contextLength: 9 });
    expect([job.tokens, job.promptTokens, job.episode]).toEqual([[5, 6], 2, "e"]);
  });

  test("stops on a string that straddles tokens, characters cut in the middle included", () => {
    const stop = "</søk→";
    const tokens = byteIds(`where?${stop} and on`);
    const {
      text,
      tokens: said,
      finishReason,
    } = say(jobOf("q", { stop: ["never", stop] }), tokens).completion();
    expect({ text, finishReason }).toEqual({ text: `where?${stop}`, finishReason: "stop" });
    expect(said).toEqual(byteIds(`where?${stop}`));
  });

  test("stops on a string inside one longer token, which is kept whole", () => {
    const river = tinyTokenizer.encode(" river");
    expect(river).toHaveLength(1);
    const completion = say(jobOf("q", { stop: ["riv"] }), [...river, ...byteIds("x")]).completion();
    expect(completion).toMatchObject({ text: " river", finishReason: "stop", tokens: river });
  });

  test("ends at any of several ids that end a text", () => {
    const tokenizer = { ...tinyTokenizer, furtherEndIds: [7] };
    const job = new CompletionJob({ text: "q", seed: 1 }, options, { tokenizer, contextLength: 100 });
    expect(say(job, [...byteIds("ok"), 7, ...byteIds("x")]).completion()).toMatchObject({
      text: "ok",
      finishReason: "endOfText",
    });
  });

  test("does not stop on what the context says, alone or together with the completion", () => {
    const job = say(jobOf("a</s>b</s", { stop: ["</s>"], maxTokens: 3 }), byteIds(">ok"));
    expect(job.completion()).toMatchObject({ text: ">ok", finishReason: "length" });
  });

  test("ends with the end-of-text token, which is no part of the text", () => {
    const tokens = [...byteIds("yes"), endOfTextId];
    expect(say(jobOf("q", { maxTokens: 4 }), tokens).completion()).toEqual({
      text: "yes",
      tokens,
      logprobs: tokens.map(() => -0.5),
      finishReason: "endOfText",
      usage: { promptTokens: 1, completionTokens: 4 },
    });
  });

  test("ends after maxTokens tokens, or when the model is full", () => {
    const letters = byteIds("abcdefgh");
    expect(say(jobOf("q", { maxTokens: 3 }), letters).completion()).toMatchObject({
      text: "abc",
      finishReason: "length",
    });
    expect(say(jobOf("q", {}, 6), letters).completion()).toMatchObject({
      text: "abcde",
      finishReason: "length",
    });
  });

  test("a stop string completed by the last possible token counts as a stop", () => {
    const completion = say(jobOf("q", { stop: ["bc"], maxTokens: 3 }), byteIds("abc")).completion();
    expect(completion.finishReason).toBe("stop");
  });
});
