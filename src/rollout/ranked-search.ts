/**
 * What lies between retriever and agent in CoSearch (arXiv 2604.17555): a retriever for one episode that fetches N
 * candidates and passes K of them on, chosen by a generative ranker, which is a policy, or by the oracle of appendix F.
 *
 * Each call of the ranker is a trajectory of its own: a prompt, one turn, and the candidates as what the prompt shows (as
 * in mode rag), linked to the agent's episode and turn. A ranking that breaks the grammar, and a ranker that fails, leave
 * the retriever's own best K; both are recorded as what they are, never as a ranking.
 */
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import type { Question } from "../corpus/question.ts";
import { openingTokens } from "../environment/opening.ts";
import { prepareQuestion } from "../environment/prompt.ts";
import { parseRanking, rankingStopStrings, renderOrder } from "../environment/ranking-codec.ts";
import { type RankingPromptOptions, rankingPrompt } from "../environment/ranking-prompt.ts";
import type { StopReason } from "../environment/stop-reason.ts";
import { PolicyError } from "../errors.ts";
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";
import { isBudgetSpent } from "../shared/budget.ts";
import { random } from "../shared/random.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Completion, Policy, SamplingOptions } from "./policy.ts";
import type { Segment, Trajectory } from "./trajectory.ts";
import { noUsage, usageOf } from "./usage.ts";

/** What chooses the passages of every search. */
export type Ranker = GenerativeRanker | OracleRanker;

export interface OracleRanker {
  readonly type: "oracle";
  /** Passages that are fetched for a query: N. */
  readonly candidates: number;
}

export interface GenerativeRanker {
  readonly type: "generative";
  readonly candidates: number;
  readonly policy: Policy;
  /** Required for a policy that works on tokens. */
  readonly tokenizer?: Tokenizer | undefined;
  /** Most tokens of prompt and ranking together. */
  readonly contextLength?: number | undefined;
  readonly prompt: RankingPromptOptions;
  /** Most tokens of a ranking. */
  readonly maxTokens: number;
  readonly sampling: Pick<SamplingOptions, "temperature" | "topP" | "topK">;
}

export interface RankedSearchInput {
  readonly ranker: Ranker;
  readonly retriever: Retriever;
  readonly question: Question;
  readonly group: string;
  readonly sample: number;
  readonly seed: number;
  /** Turns of the agent that are over. */
  readonly turn: () => number;
  readonly now: () => number;
}

/** The ranked retriever of one episode. */
export class RankedSearch {
  readonly retriever: Retriever;
  readonly #input: RankedSearchInput;
  /** Calls that began, and those that are over, each at its place. */
  #calls = 0;
  readonly #done: Trajectory[] = [];

  constructor(input: RankedSearchInput) {
    this.#input = input;
    const { retriever, ranker } = input;
    this.retriever = {
      identity: retriever.identity,
      retrieve: async (queries, k, signal) => {
        const found = await retriever.retrieve(queries, Math.max(k, ranker.candidates), signal);
        return await Promise.all(
          found.map((candidates, i) => this.#choose({ query: queries[i] as string, candidates, k }, signal)),
        );
      },
    };
  }

  /** The ranker's trajectories so far, in the order of their calls. */
  get rankings(): readonly Trajectory[] {
    return this.#done.filter((ranking) => ranking !== undefined);
  }

  async #choose(search: Search, signal?: AbortSignal): Promise<ScoredPassage[]> {
    const { ranker, question } = this.#input;
    const { candidates, k } = search;
    if (ranker.type === "oracle") return oracleChoice(candidates, question.goldAnswers, k);
    const count = Math.min(k, candidates.length);
    if (count === 0) return [];
    const place = this.#calls++;
    const call = new RankingCall(ranker, this.#input, { ...search, count, place });
    const ranking = await call.run(signal);
    this.#done[place] = ranking;
    return chosenPassages(ranking) ?? candidates.slice(0, k);
  }
}

interface Search {
  readonly query: string;
  readonly candidates: readonly ScoredPassage[];
  readonly k: number;
}

/** One call of the ranker. */
class RankingCall {
  readonly #ranker: GenerativeRanker;
  readonly #input: RankedSearchInput;
  readonly #search: Search & { readonly count: number; readonly place: number };
  readonly #turn: number;
  readonly #started: number;

  constructor(
    ranker: GenerativeRanker,
    input: RankedSearchInput,
    search: Search & { readonly count: number; readonly place: number },
  ) {
    this.#ranker = ranker;
    this.#input = input;
    this.#search = search;
    this.#turn = input.turn();
    this.#started = input.now();
  }

  /** Its trajectory. Throws when aborted and when a budget is spent. */
  async run(signal?: AbortSignal): Promise<Trajectory> {
    const prompt = await this.#prompt();
    if (prompt.room < 1) return this.#record([prompt.segment], "contextLimit");
    let completion: Completion;
    try {
      completion = await this.#complete(prompt, signal);
    } catch (error) {
      if (!(error instanceof PolicyError) || isBudgetSpent(error) || signal?.aborted) throw error;
      return this.#record([prompt.segment], "policyFailure", { failure: error.message });
    }
    const { text, tokens, logprobs, usage } = completion;
    const answer: Segment = {
      source: "policy",
      text,
      tokens: tokens ?? this.#ranker.tokenizer?.encode(text) ?? [],
      ...(logprobs !== undefined && { logprobs }),
    };
    const { count, candidates } = this.#search;
    const order = parseRanking(text, { count, candidates: candidates.length });
    return this.#record([prompt.segment, answer], order === undefined ? "turnLimit" : "answer", {
      order,
      completion: usage,
      truncated: prompt.isCut,
    });
  }

  /** The prompt, its candidates cut until a whole ranking fits beside it, or to nothing. */
  async #prompt(): Promise<{ readonly segment: Segment; readonly room: number; readonly isCut: boolean }> {
    const { tokenizer, contextLength = Number.POSITIVE_INFINITY, prompt: options, maxTokens } = this.#ranker;
    const { query, candidates, count } = this.#search;
    const question = prepareQuestion(this.#input.question.text);
    const longest = Math.max(...candidates.map(({ passage }) => passage.title.length + passage.text.length));
    let characters = options.maxPassageCharacters;
    for (;;) {
      const content = { question, query, candidates, count };
      const text = await rankingPrompt(content, options, { tokenizer, characters });
      const tokens = tokenizer === undefined ? [] : openingTokens(text, tokenizer);
      const room = contextLength - tokens.length;
      const isCut = characters < options.maxPassageCharacters;
      if (room >= maxTokens || characters === 0)
        return { segment: { source: "prompt", text, tokens }, room: Math.min(room, maxTokens), isCut };
      characters = Math.floor(Math.min(characters, longest + 2) / 2);
    }
  }

  async #complete(
    { segment, room }: { readonly segment: Segment; readonly room: number },
    signal?: AbortSignal,
  ): Promise<Completion> {
    const { policy, sampling, tokenizer } = this.#ranker;
    const { group, sample, seed } = this.#input;
    const { place } = this.#search;
    const context = {
      text: segment.text,
      parts: [{ source: segment.source, text: segment.text }],
      ...(tokenizer !== undefined && { tokens: segment.tokens }),
      episode: `${group}#${sample}/ranking/${place}`,
      seed: random(seed, "ranking", group, sample, place).below(2 ** 31),
    };
    const options = { ...sampling, maxTokens: room, stop: rankingStopStrings };
    const completions = await policy.complete([context], options, signal);
    const [completion] = completions;
    if (completions.length !== 1 || completion === undefined)
      throw new PolicyError(`expected one ranking for one context, got ${completions.length}`);
    return completion;
  }

  #record(
    segments: readonly Segment[],
    stopReason: StopReason,
    found: {
      readonly order?: readonly number[] | undefined;
      readonly completion?: Completion["usage"];
      readonly failure?: string;
      readonly truncated?: boolean;
    } = {},
  ): Trajectory {
    const { question, group, sample, now } = this.#input;
    const { query, candidates, place, count } = this.#search;
    const { order, completion, failure, truncated = false } = found;
    const answer = order && renderOrder(order);
    const elapsed = now() - this.#started;
    return {
      question,
      group,
      sample,
      segments,
      turns: [
        {
          action:
            answer === undefined ? { type: "invalid", reason: "malformed" } : { type: "answer", answer },
          passages: candidates,
          ...(truncated && { truncated }),
        },
      ],
      answer,
      stopReason,
      ...(failure !== undefined && { failure }),
      usage: completion === undefined ? noUsage : usageOf(completion),
      time: { policyMs: elapsed, retrievalMs: 0, totalMs: elapsed },
      ranking: { turn: this.#turn, place, query, count },
    };
  }
}

/** The passages that a ranking chose, best first; undefined for a call that gave no ranking. */
export function chosenPassages({ answer, turns }: Trajectory): ScoredPassage[] | undefined {
  if (answer === undefined) return undefined;
  const candidates = turns[0]?.passages ?? [];
  return [...answer.matchAll(/\d+/g)].map(([number], index) => ({
    passage: (candidates[Number(number) - 1] as ScoredPassage).passage,
    score: 1 / (index + 1),
  }));
}

/**
 * The oracle (appendix F, Eq. 7): the candidates that hold a gold answer in the order of the retriever, then the best of
 * the others, k in all; without any such candidate the retriever's own best k. Answers that are all yes, no, true or false
 * stand in passages for other reasons, so they make none relevant, as in the ranker's reward.
 */
export function oracleChoice(
  candidates: readonly ScoredPassage[],
  goldAnswers: readonly string[],
  k: number,
): ScoredPassage[] {
  const holds = answerMatcher(isVerdict(goldAnswers) ? [] : goldAnswers);
  const relevant = candidates.filter(({ passage }) => holds(passage));
  const others = candidates.filter((candidate) => !relevant.includes(candidate));
  return [...relevant, ...others].slice(0, k).map(({ passage }, i) => ({ passage, score: 1 / (i + 1) }));
}
