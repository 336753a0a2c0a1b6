/**
 * What every policy must do, as one suite: call `policySuite` in the test file of an implementation. A behaviour that an
 * implementation cannot have by its nature is skipped with a reason.
 */
import { describe, expect, test } from "vitest";
import { assert } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Completion, Context, Policy, SamplingOptions } from "./policy.ts";

export interface PolicyFixture {
  readonly policy: Policy;
  readonly tokenizer: Tokenizer;
  /** Texts to complete: at least three, all different. */
  readonly prompts: readonly string[];
}

export type PolicyBehaviour = "tokens" | "stopStrings" | "abortWhileWorking" | "seeds" | "independentOfOrder";

export interface PolicySuiteOptions {
  /** A new policy for each test, so that none depends on another. */
  readonly create: () => Promise<PolicyFixture>;
  /** Completions of this many tokens must be possible for all prompts; default 12. */
  readonly tokens?: number;
  /** Behaviours that this policy does not have, each with the reason. */
  readonly skip?: Partial<Readonly<Record<PolicyBehaviour, string>>>;
}

export function policySuite(name: string, { create, tokens = 12, skip = {} }: PolicySuiteOptions): void {
  const greedy: SamplingOptions = { maxTokens: tokens, temperature: 0, topP: 1, topK: 0, stop: [] };
  const sampled: SamplingOptions = { ...greedy, temperature: 1 };
  const behaviour = (key: PolicyBehaviour, title: string, body: () => Promise<void>): void => {
    const reason = skip[key];
    test.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, body);
  };

  const hasTokens = skip.tokens === undefined;

  describe(`${name} keeps the policy contract`, () => {
    test("it says what it is", async () => {
      const { policy } = await create();
      const { version: _, ...identity } = policy.identity;
      expect(identity).toEqual({
        type: expect.stringMatching(/./),
        model: expect.stringMatching(/./),
      });
    });

    test("no contexts, no completions", async () => {
      const { policy } = await create();
      expect(await policy.complete([], greedy)).toEqual([]);
    });

    behaviour("tokens", "completions carry the ids that were sampled", async () => {
      const fixture = await create();
      const [completion] = await fixture.policy.complete(contextsOf(fixture).slice(0, 1), greedy);
      expect(completion?.tokens).toBeDefined();
    });

    test("text, tokens, log-probabilities and usage belong together", async () => {
      const fixture = await create();
      const contexts = contextsOf(fixture);
      const completions = await fixture.policy.complete(contexts, sampled);
      expect(completions).toHaveLength(contexts.length);
      completions.forEach((completion, i) => {
        checkCompletion(completion, contexts[i] as Context, fixture.tokenizer);
      });
    });

    test("a completion has at most maxTokens tokens and then says so", async () => {
      const fixture = await create();
      const [completion] = await fixture.policy.complete(contextsOf(fixture).slice(0, 1), {
        ...greedy,
        maxTokens: 1,
      });
      expect(completion?.usage.completionTokens).toBe(1);
      if (hasTokens) expect(completion?.tokens).toHaveLength(1);
      if (completion?.tokens?.[0] !== fixture.tokenizer.endOfTextId)
        expect(completion?.finishReason).toBe("length");
    });

    behaviour("stopStrings", "a completion ends with the first stop string it completes", async () => {
      const fixture = await create();
      const context = contextsOf(fixture)[0] as Context;
      const [free] = await fixture.policy.complete([context], greedy);
      const stop = plainPair((free as Completion).text);
      const [stopped] = await fixture.policy.complete([context], { ...greedy, stop: ["never said", stop] });
      const ids = stopped?.tokens ?? [];
      expect(stopped?.finishReason).toBe("stop");
      expect(stopped?.text).toContain(stop);
      if (!hasTokens) expect((free as Completion).text.startsWith(stopped?.text ?? "")).toBe(true);
      if (hasTokens) expect(ids).toEqual(free?.tokens?.slice(0, ids.length));
      expect(fixture.tokenizer.decode(ids.slice(0, -1))).not.toContain(stop);
    });

    test("greedy completions repeat", async () => {
      const [first, second] = [await create(), await create()];
      const a = await first.policy.complete(contextsOf(first), greedy);
      expect(texts(await second.policy.complete(contextsOf(second), greedy))).toEqual(texts(a));
    });

    test("equal seeds give equal completions", async () => {
      const [first, second] = [await create(), await create()];
      const a = await first.policy.complete(contextsOf(first), sampled);
      expect(texts(await second.policy.complete(contextsOf(second), sampled))).toEqual(texts(a));
    });

    behaviour("seeds", "other seeds give other completions", async () => {
      const fixture = await create();
      const context = contextsOf(fixture)[0] as Context;
      const contexts = Array.from({ length: 8 }, (_, seed) => ({
        ...context,
        seed,
        episode: `seed ${seed}`,
      }));
      const completions = await fixture.policy.complete(contexts, sampled);
      expect(new Set(texts(completions)).size).toBeGreaterThan(1);
    });

    behaviour(
      "independentOfOrder",
      "neither order nor company of contexts changes a completion",
      async () => {
        const [together, reversed, overlapping] = [await create(), await create(), await create()];
        const contexts = contextsOf(together);
        const expected = texts(await together.policy.complete(contexts, sampled));
        const backwards = await reversed.policy.complete(contexts.toReversed(), sampled);
        expect(texts(backwards).toReversed()).toEqual(expected);
        const calls = contexts.map((context) => overlapping.policy.complete([context], sampled));
        expect(texts((await Promise.all(calls)).flat())).toEqual(expected);
      },
    );

    test("a later turn of an episode is completed as if it were new", async () => {
      const [continued, fresh] = [await create(), await create()];
      const context = contextsOf(continued)[0] as Context;
      const [first] = await continued.policy.complete([context], greedy);
      const later = extend(context, first as Completion, continued.tokenizer);
      const [a] = await continued.policy.complete([later], { ...greedy, maxTokens: 4 });
      const [b] = await fresh.policy.complete([{ ...later, episode: "new" }], { ...greedy, maxTokens: 4 });
      expect(texts([a as Completion])).toEqual(texts([b as Completion]));
    });

    test("an aborted call gives the signal's reason", async () => {
      const fixture = await create();
      const reason = new Error("enough");
      const call = fixture.policy.complete(contextsOf(fixture), greedy, AbortSignal.abort(reason));
      await expect(call).rejects.toBe(reason);
    });

    behaviour("abortWhileWorking", "a call can be aborted while it works", async () => {
      const fixture = await create();
      const controller = new AbortController();
      const reason = new Error("enough");
      const call = fixture.policy.complete(contextsOf(fixture), sampled, controller.signal);
      controller.abort(reason);
      await expect(call).rejects.toBe(reason);
      expect(await fixture.policy.complete(contextsOf(fixture), greedy)).toHaveLength(fixture.prompts.length);
    });
  });
}

function contextsOf({ prompts, tokenizer }: PolicyFixture): Context[] {
  return prompts.map((text, i) => ({
    text,
    tokens: tokenizer.encode(text),
    episode: `episode ${i}`,
    seed: 100 + i,
  }));
}

/** The context after a completion and an observation. */
function extend(context: Context, { text, tokens }: Completion, tokenizer: Tokenizer): Context {
  const observation = " and then ";
  return {
    ...context,
    text: context.text + text + observation,
    tokens: [
      ...(context.tokens ?? []),
      ...(tokens ?? tokenizer.encode(text)),
      ...tokenizer.encode(observation),
    ],
  };
}

/** Two characters near the middle of `text` that are whole in any encoding. */
function plainPair(text: string): string {
  const pairs = text.slice(Math.floor(text.length / 2)).match(/[^\ufffd\ud800-\udfff]{2}/);
  assert(pairs !== null, `the suite needs a greedy completion with plain text, got ${JSON.stringify(text)}`);
  return pairs[0];
}

function texts(completions: readonly Completion[]): string[] {
  return completions.map((completion) => JSON.stringify([completion.text, completion.tokens]));
}

function checkCompletion(completion: Completion, context: Context, tokenizer: Tokenizer): void {
  const { text, tokens, logprobs, finishReason, usage } = completion;
  if (tokens === undefined) {
    expect(logprobs).toBeUndefined();
    return;
  }
  expect(usage).toMatchObject({ promptTokens: context.tokens?.length, completionTokens: tokens.length });
  const isEnded = finishReason === "endOfText";
  expect(tokens.at(-1) === tokenizer.endOfTextId).toBe(isEnded);
  expect(tokenizer.decode(isEnded ? tokens.slice(0, -1) : tokens)).toBe(text);
  if (logprobs === undefined) return;
  expect(logprobs).toHaveLength(tokens.length);
  for (const logprob of logprobs) expect(logprob <= 0 && Number.isFinite(logprob)).toBe(true);
}
