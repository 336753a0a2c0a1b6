/**
 * `forager doctor`: looks at everything a recipe needs before hours are spent on it. Examinations build on each
 * other: without a recipe there are no data, without data no model; what depends on something broken is left out.
 */
import { loadRecipe } from "../../config/load-recipe.ts";
import type { Recipe } from "../../config/recipe.ts";
import { ForagerError, UsageError } from "../../errors.ts";
import { demonstrate } from "../../rollout/teacher.ts";
import { policyTokenCount, tokenCount } from "../../rollout/trajectory-view.ts";
import { goldTitles } from "../../training/gold-titles.ts";
import { createEngine, isEmbedded } from "../../training/open-engine.ts";
import { loadData } from "../../training/setup.ts";
import { processWorld } from "../../training/world.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { type Check, costlyEpisodes, type DataPatient, type Patient, spread } from "../doctor/check.ts";
import { checkQuestions, checkRecall } from "../doctor/data-checks.ts";
import { checkDemonstrations } from "../doctor/demonstration-check.ts";
import { doctorOfEngine, engineFlags } from "../doctor/engine-probe.ts";
import { checkContext, checkReward, checkTags } from "../doctor/episode-checks.ts";
import {
  checkFolder,
  checkMemory,
  checkTime,
  type EpisodeSize,
  measureSpeed,
} from "../doctor/machine-checks.ts";
import { checkRetrieval } from "../doctor/retrieval-checks.ts";

export const doctorCommand = defineCommand({
  name: "doctor",
  summary: "Check a recipe, its data, its model and this machine before training.",
  args: [{ name: "RECIPE", doc: "a recipe file; none with --engine", isOptional: true }],
  options: {
    out: { type: "text", value: "FOLDER", doc: "Folder the run is meant for; default: runs." },
    set: { type: "list", value: "KEY=VALUE", doc: "Override of the recipe, such as seed=2; repeatable." },
    ...engineFlags,
  },
  examples: [
    "doctor recipes/quickstart.yaml",
    "doctor my-recipe.yaml --set environment.k=5 --json",
    "doctor --engine http://127.0.0.1:8000 --profile skyrl-jax --json",
  ],
  async run({ args: [path], options: { out = "runs", set, ...flags } }, io) {
    if (flags.engine !== undefined) return await doctorOfEngine(path, flags, io);
    if (path === undefined) throw new UsageError("doctor: name a RECIPE, or a server with --engine URL");
    const checks: Check[] = [];
    const add = (check: Check): void => {
      checks.push(check);
      io.print(checkText(check));
    };
    const recipe = await attempt("recipe", add, () => loadRecipe(path, { overrides: set }));
    if (recipe !== undefined) {
      const stages = recipe.stages.map(({ name, steps }) => `${name} (${steps} steps)`).join(", ");
      add({ name: "recipe", ok: true, detail: `${recipe.name}: ${stages}` });
      await examine(recipe, add, io);
    }
    add(await checkFolder(out));
    const isHealthy = checks.every(({ ok }) => ok);
    io.print(isHealthy ? "all is well" : "something needs fixing");
    return { json: { ok: isHealthy, checks }, exitCode: isHealthy ? 0 : 1 };
  },
});

type Add = (check: Check) => void;

async function examine(recipe: Recipe, add: Add, io: CommandIo): Promise<void> {
  const { recordRetrieval: _, ...unrecorded } = recipe;
  const data = await attempt("data", add, () => loadData(unrecorded, processWorld(io)));
  if (data === undefined) return;
  try {
    const patient: DataPatient = { recipe, data };
    await examineData(patient, add);
    io.signal.throwIfAborted();
    const engine = await attempt("model", add, () => createEngine(recipe, data, io));
    if (engine === undefined) return;
    try {
      await examineModel({ ...patient, engine }, add, io);
    } finally {
      await engine.close();
    }
  } finally {
    await data.close();
  }
}

async function examineData(patient: DataPatient, add: Add): Promise<void> {
  const { recipe, data } = patient;
  const { method, corpusHash } = data.retriever.identity;
  const { passages } = data;
  const corpus = passages === undefined ? "passages are kept elsewhere" : `${passages.count} passages`;
  add({ name: "data", ok: true, detail: `${corpus}, ${method}, corpus ${corpusHash.slice(0, 12)}` });
  add(checkQuestions(patient));
  const checks = await attempt("retrieval", add, async () => [
    await checkRecall(patient),
    ...(await checkRetrieval({ ...data, questions: data.evaluation, k: recipe.environment.k })),
  ]);
  for (const check of checks ?? []) add(check);
}

async function examineModel(patient: Patient, add: Add, io: CommandIo): Promise<void> {
  const { engine } = patient;
  if (!isEmbedded(engine)) return await examineRemote(patient, add, io);
  const { parameterCount, trainableParameterCount, tokenizer } = engine;
  const millions = (count: number): string => `${(count / 1e6).toFixed(2)} M`;
  const trained =
    trainableParameterCount < parameterCount ? ` (${millions(trainableParameterCount)} trained)` : "";
  add({
    name: "model",
    ok: true,
    detail: `${millions(parameterCount)} parameters${trained}, ${tokenizer.vocabularySize} tokens`,
  });
  add(checkTags(patient));
  const context = await checkContext(patient);
  add(context);
  const memory = await attempt("memory", add, () => checkMemory({ ...patient, engine }, io));
  if (context.ok) await examineEpisodes(patient, { add, io, hasRoom: memory?.ok === true });
  if (memory !== undefined) add(memory);
  io.signal.throwIfAborted();
  if (!memory?.ok) return;
  const speed = await measureSpeed({ ...patient, engine }, io.progress.now);
  const size = await attempt("time", add, () => episodeSize(patient, io.signal));
  if (size !== undefined) add(checkTime(patient, speed, size));
}

/** The server was probed when it was opened; memory and time are its own. */
async function examineRemote(patient: Patient, add: Add, io: CommandIo): Promise<void> {
  const { engine } = patient;
  const detail = `${JSON.stringify(engine.describe?.())}, ${engine.tokenizer.vocabularySize} tokens, context ${engine.contextLength}`;
  add({ name: "model", ok: true, detail });
  add(checkTags(patient));
  const context = await checkContext(patient);
  add(context);
  if (context.ok) await examineEpisodes(patient, { add, io, hasRoom: true });
}

interface EpisodeSetting {
  readonly add: Add;
  readonly io: CommandIo;
  /** Whether the models of the recipe fit into memory together. */
  readonly hasRoom: boolean;
}

async function examineEpisodes(patient: Patient, { add, io, hasRoom }: EpisodeSetting): Promise<void> {
  const { ranker } = patient.recipe;
  const canPlay = hasRoom || ranker?.type !== "generative" || ranker.weights === "shared";
  const play = () => checkDemonstrations(patient, io);
  const shown = canPlay ? await attempt("demonstrations", add, play) : undefined;
  if (shown !== undefined) add(shown);
  add(await checkReward(patient));
}

/** The mean of demonstrations, where the questions have plans; else half of the longest episode. */
async function episodeSize({ recipe, data, engine }: Patient, signal: AbortSignal): Promise<EpisodeSize> {
  const { environment } = recipe;
  const { retriever, train, passages } = data;
  const taught = recipe.stages.find((stage) => stage.type === "supervised")?.teacher;
  const teacher =
    taught?.type === "goldPassages" ? taught : ({ type: "plan", patience: 1, redundancy: 0 } as const);
  const planned = spread(train, passages === undefined ? costlyEpisodes : 32).filter(
    ({ plan = [], goldPassages }) => (teacher.type === "plan" ? plan : goldPassages).length > 0,
  );
  const { mode, maxTurnTokens, maxObservationTokens } = environment;
  const maxSearches = mode === "search" || mode === "planner" ? environment.maxSearches : 0;
  const requests = planned.map((question) => ({ question, group: question.id, sample: 0, seed: 0 }));
  const { tokenizer, contextLength } = engine;
  const titles = goldTitles(data);
  const setting = { retriever, environment, tokenizer, contextLength, titles, signal };
  const { trajectories: shown } = await demonstrate(requests, setting, teacher);
  if (shown.length === 0) {
    const policyTokens = (maxTurnTokens * (maxSearches + 1)) / 2;
    return { policyTokens, tokens: policyTokens + (maxSearches * maxObservationTokens) / 2 };
  }
  const mean = (count: (trajectory: (typeof shown)[number]) => number): number =>
    shown.reduce((sum, trajectory) => sum + count(trajectory), 0) / shown.length;
  return { tokens: mean(tokenCount), policyTokens: mean(policyTokenCount) };
}

/** What `work` gives; an error of the user's becomes a failed check. */
async function attempt<T>(name: string, add: Add, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ForagerError)) throw error;
    add({ name, ok: false, detail: error.message });
    return undefined;
  }
}

function checkText({ name, ok, detail, fix }: Check): string {
  return `${ok ? "ok  " : "FAIL"} ${name}: ${detail}${fix === undefined ? "" : `\n     ${ok ? "note" : "fix"}: ${fix}`}`;
}
