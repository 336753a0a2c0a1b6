/** Examinations of what the model reads and writes: tags, stop strings, context, reward. */

import { type Question, questionKey } from "../../corpus/question.ts";
import { findCodec } from "../../environment/codecs.ts";
import { neutralizer } from "../../environment/neutralize.ts";
import { findPassageTemplate } from "../../environment/passage-template.ts";
import { ruleVerdict } from "../../reward/judge.ts";
import { type RewardOptions, reward } from "../../reward/reward.ts";
import { generatorOptionsSchema } from "../../rollout/generator.ts";
import { runRollout } from "../../rollout/rollout.ts";
import { scriptedPolicy } from "../../rollout/scripted-policy.ts";
import type { Trajectory } from "../../rollout/trajectory.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { episodeSum, episodeTokens } from "../../training/episode-tokens.ts";
import { longestPrompt } from "../../training/prompt-fit.ts";
import { type Check, type Patient, passagesOf, spread } from "./check.ts";

/** Each tag must survive encoding and decoding, alone and inside text, and no passage may hold one. */
export function checkTags({ recipe, data, engine: { tokenizer } }: Patient): Check {
  const name = "tags and stop strings";
  const codec = findCodec(recipe.environment.codec);
  const words = [...new Set([...codec.tags, ...codec.stopStrings])];
  const broken = words.find((word) => !survives(tokenizer, word) || !survives(tokenizer, ` a${word}b`));
  if (broken !== undefined)
    return {
      name,
      ok: false,
      detail: `${broken} comes back from the tokenizer as ${JSON.stringify(tokenizer.decode(tokenizer.encode(broken)))}`,
      fix: "use a tokenizer that keeps the tags, or another codec",
    };
  const reserved = [...codec.tags, ...tokenizer.specialTokens];
  const safe = neutralizer(reserved);
  const template = findPassageTemplate(recipe.environment.passageTemplate);
  let count = 0;
  let held = 0;
  for (const passage of passagesOf(data)) {
    count++;
    const text = template.render(passage, 1);
    const made = safe(text);
    if (made !== text) held++;
    if (reserved.some((word) => made.includes(word)))
      return { name, ok: false, detail: `passage ${passage.id} still holds a tag after it was made safe` };
  }
  const single = words.filter((word) => tokenizer.encode(word).length === 1).length;
  return {
    name,
    ok: true,
    detail: `${words.length} tags come back as they were, ${single} of them one token; ${held} of ${count} passages held one and were made safe`,
  };
}

function survives(tokenizer: Tokenizer, text: string): boolean {
  return tokenizer.decode(tokenizer.encode(text)) === text;
}

/** The prompt with one answer must fit; the longest episode should. */
export async function checkContext({ recipe, data: { train, evaluation }, engine }: Patient): Promise<Check> {
  const { tokenizer, contextLength } = engine;
  const name = "context";
  const { environment } = recipe;
  const longest = await longestPrompt([...train, ...evaluation], { environment, tokenizer });
  if (longest === undefined) return { name, ok: false, detail: "there is no question" };
  const { maxTurnTokens } = environment;
  const full = episodeTokens(environment, longest.tokens);
  const detail = `the longest prompt has ${longest.tokens} tokens (${questionKey(longest.question)}), the longest episode at most ${full} (${episodeSum(environment, longest.tokens)}), the context ${contextLength}`;
  if (longest.tokens + maxTurnTokens > contextLength)
    return { name, ok: false, detail, fix: "raise model.contextLength, or leave that question out" };
  if (full <= contextLength) return { name, ok: true, detail };
  return {
    name,
    ok: true,
    detail,
    fix: "episodes that reach the end of the context end without an answer; lower the limits of environment or raise model.contextLength if many do",
  };
}

/** In the real environment a gold answer must earn the full reward, and no answer nothing. */
export async function checkReward(patient: Patient): Promise<Check> {
  const name = "reward";
  const questions = spread([...patient.data.train, ...patient.data.evaluation], 100);
  const stages = patient.recipe.stages.flatMap((stage) => (stage.type === "reinforcement" ? [stage] : []));
  for (const stage of stages)
    for (const question of questions) {
      const detail =
        patient.recipe.environment.mode === "planner"
          ? await judgeProblem(patient, question)
          : await rewardProblem(patient, question, stage.reward);
      if (detail !== undefined)
        return {
          name,
          ok: false,
          detail: `stage ${stage.name}: ${detail}`,
          fix: "correct the gold answer, raise environment.maxTurnTokens if it is long, or use another reward",
        };
    }
  const detail = `gold answers of ${questions.length} questions earn 1, no answer earns 0 (${stages.length} ${stages.length === 1 ? "stage" : "stages"} with a reward)`;
  return { name, ok: true, detail };
}

async function rewardProblem(
  { recipe, data: { retriever }, engine: { tokenizer, contextLength } }: Patient,
  question: Question,
  options: RewardOptions,
): Promise<string | undefined> {
  const key = questionKey(question);
  const play = async (turn: string): Promise<Trajectory> => {
    const sampling = { temperature: 0, topP: 1, topK: 0 };
    const policy = scriptedPolicy(() => turn, tokenizer);
    const setting = { retriever, environment: recipe.environment, tokenizer, contextLength };
    return runRollout({ ...setting, policy, sampling, question, group: key, sample: 0, seed: 0 });
  };
  const silence = reward(await play(""), options).value;
  if (silence !== 0) return `no answer to ${key} earns ${silence}`;
  const [gold = ""] = question.goldAnswers;
  const thought = options.type === "format" ? "<think> known </think>" : "";
  const turn = thought + findCodec(recipe.environment.codec).render({ type: "answer", answer: gold });
  const answered = await play(turn);
  const earned = reward(answered, options).value;
  return earned === 1
    ? undefined
    : `the gold answer "${gold}" of ${key} is read as "${answered.answer ?? ""}" and earns ${earned}`;
}

/** A planner does not answer: a generator that gives the gold answer must be judged right. */
async function judgeProblem(
  { recipe, data: { retriever }, engine: { tokenizer, contextLength } }: Patient,
  question: Question,
): Promise<string | undefined> {
  const { environment, planner } = recipe;
  const [gold = ""] = question.goldAnswers;
  const { answer } = await runRollout({
    ...{ retriever, environment, tokenizer, contextLength, question },
    policy: scriptedPolicy([findCodec(environment.codec).render({ type: "callGenerator" })], tokenizer),
    generator: {
      policy: scriptedPolicy([`<answer> ${gold} </answer>`]),
      options: generatorOptionsSchema.parse({}),
    },
    sampling: { temperature: 0, topP: 1, topK: 0 },
    ...{ group: questionKey(question), sample: 0, seed: 0 },
  });
  const rule = planner?.judge.rule ?? "exactMatch";
  return ruleVerdict(rule, answer, question.goldAnswers) === 1
    ? undefined
    : `the gold answer "${gold}" of ${questionKey(question)} is read as "${answer ?? ""}" and judged wrong by ${rule}`;
}
