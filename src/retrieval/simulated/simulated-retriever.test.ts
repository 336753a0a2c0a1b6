import { describe, expect, test } from "vitest";
import { RetrieverError } from "../../errors.ts";
import { simulatedSourceSchema } from "./simulated-options.ts";
import { createSimulatedRetriever } from "./simulated-retriever.ts";

/** Writes documents that tell the query and the kind; records its prompts. */
function writer(broken: (prompt: string, call: number) => string | undefined = () => undefined) {
  const prompts: string[][] = [];
  const generate = async (batch: readonly string[]): Promise<string[]> => {
    const call = prompts.push([...batch]);
    return batch.map((prompt) => {
      const query = prompt.match(/^Query: (.*)$/m)?.[1];
      const kind = prompt.includes("found nothing good") ? "noisy" : "useful";
      const document = (n: number) => `Doc ${n}: ${kind} ${n}\nabout ${query}`;
      return broken(prompt, call) ?? [1, 2, 3, 4, 5].map(document).join("\n");
    });
  };
  return { prompts, generate, model: "writer" };
}

function simulated(options: object = {}, simulator = writer()) {
  const parsed = simulatedSourceSchema.parse({ type: "simulated", ...options });
  return { simulator, retriever: createSimulatedRetriever(parsed, simulator) };
}

const queries = Array.from({ length: 400 }, (_, i) => `query ${i}`);

/** Which of the queries are answered with noise. */
async function noisyOnes(retriever: ReturnType<typeof simulated>["retriever"]): Promise<string[]> {
  const answers = await retriever.retrieve(queries, 1);
  return queries.filter((_, i) => answers[i]?.[0]?.passage.title.startsWith("noisy"));
}

describe("a simulated search", () => {
  test("gives the documents that the model writes, best first, and with a smaller k the first of them", async () => {
    const { retriever, simulator } = simulated();
    const [five = []] = await retriever.retrieve(["lakes"], 9);
    expect(five.map(({ passage }) => [passage.title, passage.text])).toEqual(
      [1, 2, 3, 4, 5].map((n) => [`useful ${n}`, "about lakes"]),
    );
    expect(five[0]?.passage.id).toMatch(/^simulated:[0-9a-f]{12}:useful:1$/);
    expect((await retriever.retrieve(["lakes"], 2))[0]).toEqual(five.slice(0, 2));
    expect(simulator.prompts).toHaveLength(1);
    expect(simulator.prompts[0]?.[0]).toContain("Write 5 short documents");
  });

  test("writes once for equal queries, all in one batch, and never for nothing", async () => {
    const { retriever, simulator } = simulated();
    const answers = await retriever.retrieve(["b", "a", " ", "b", ""], 1);
    expect(answers.map(([first]) => first?.passage.text)).toEqual([
      "about b",
      "about a",
      undefined,
      "about b",
      undefined,
    ]);
    expect(simulator.prompts.map((batch) => batch.length)).toEqual([2]);
  });

  test("tells the model a hint when there is one", async () => {
    const simulator = { ...writer(), hint: (query: string) => `The answer to ${query} is 42.` };
    await simulated({}, simulator).retriever.retrieve(["lakes"], 1);
    expect(simulator.prompts[0]?.[0]).toContain("The answer to lakes is 42.");
  });

  test("checks k and stops with the reason of the signal", async () => {
    const { retriever } = simulated();
    await expect(retriever.retrieve(["a"], 0.5)).rejects.toThrow("k must be an integer of at least 1");
    const reason = new Error("enough");
    await expect(retriever.retrieve(["a"], 1, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

describe("the curriculum", () => {
  const noise = { start: 0, end: 0.5, steps: 100 };

  test("starts without noise and makes more and more queries noisy, none of them useful again", async () => {
    const { retriever } = simulated({ noise });
    expect(await noisyOnes(retriever)).toEqual([]);
    let before: string[] = [];
    for (const [step, expected] of [
      [50, 1 / 6],
      [100, 0.5],
    ] as const) {
      retriever.setStep(step);
      expect(retriever.noise()).toBeCloseTo(expected, 12);
      const now = await noisyOnes(retriever);
      // Four standard deviations of 400 coins.
      expect(Math.abs(now.length / 400 - expected)).toBeLessThan(
        4 * Math.sqrt((expected * (1 - expected)) / 400),
      );
      expect(now).toEqual(expect.arrayContaining(before));
      before = now;
    }
  });

  test("repeats for the same seed, whatever was asked before, and differs for another", async () => {
    const at = async (seed: number): Promise<string[]> => {
      const { retriever } = simulated({ noise, seed });
      retriever.setStep(100);
      await retriever.retrieve([`warm-up ${Math.sqrt(seed + 2)}`], 1);
      return noisyOnes(retriever);
    };
    const [once, again, other] = [await at(7), await at(7), await at(8)];
    expect(again).toEqual(once);
    expect(other).not.toEqual(once);
  });

  test("without it every answer is useful", async () => {
    const { retriever } = simulated();
    retriever.setStep(1e6);
    expect(await noisyOnes(retriever)).toEqual([]);
  });
});

describe("a reply that cannot be read", () => {
  test("is asked for again, alone and with a reminder", async () => {
    const simulator = writer((prompt, call) =>
      call < 3 && prompt.includes("Query: bad") ? "I am sorry" : undefined,
    );
    const { retriever } = simulated({}, simulator);
    const answers = await retriever.retrieve(["good", "bad"], 1);
    expect(answers.map(([first]) => first?.passage.text)).toEqual(["about good", "about bad"]);
    expect(simulator.prompts.map((batch) => batch.length)).toEqual([2, 1, 1]);
    expect(simulator.prompts[1]?.[0]).toContain("could not be read");
  });

  test("ends as an error that shows it, after the retries, and is not remembered", async () => {
    let isBroken = true;
    const simulator = writer(() => (isBroken ? "I am sorry" : undefined));
    const { retriever } = simulated({ retries: 1 }, simulator);
    const asking = retriever.retrieve(["a", "b"], 1);
    await expect(asking).rejects.toThrow(RetrieverError);
    await expect(asking).rejects.toThrow('got "I am sorry" after 2 attempts (2 of 2 queries)');
    expect(simulator.prompts).toHaveLength(2);
    isBroken = false;
    expect((await retriever.retrieve(["a"], 1))[0]).toHaveLength(1);
  });

  test("a wrong number of texts is an error at once", async () => {
    const simulator = { model: "m", prompts: [], generate: async () => [] };
    await expect(simulated({}, simulator).retriever.retrieve(["a"], 1)).rejects.toThrow(
      "expected 1 texts, got 0",
    );
  });
});

test("the identity holds the model, the templates and the curriculum", () => {
  const { identity } = simulated({ noise: { steps: 10 } }).retriever;
  expect(identity.parameters).toMatchObject({
    model: "writer",
    "noise.end": 0.5,
    "noise.steps": 10,
    seed: 0,
  });
  expect(identity.indexHash).toMatch(/^[0-9a-f]{64}$/);
  const other = simulated({ noise: { steps: 10 }, usefulTemplate: "{count} {query}" }).retriever.identity;
  expect(other.indexHash).not.toBe(identity.indexHash);
  expect(() => simulated({ usefulTemplate: "{count}" })).toThrow("must hold {query}");
});
