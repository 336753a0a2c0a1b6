/**
 * What a program that uses Forager may import, sorted by room. Anything that is not in this
 * list may change without notice.
 */

export { type AdvantageOptions, groupAdvantages } from "./algorithm/advantage.ts";
export { demonstrationDatum, policyDatum } from "./algorithm/batch.ts";
export type { Datum, ValueDatum } from "./algorithm/datum.ts";
export { type GaeOptions, generalizedAdvantages, tokenRewards, whiten } from "./algorithm/gae.ts";
export { advantagesByGroup, type GroupReport, type RewardedTrajectory } from "./algorithm/group.ts";
export type { KlTerm, Loss, ValueLoss } from "./algorithm/loss.ts";
export { type LossNormalization, type Minibatch, minibatches } from "./algorithm/minibatch.ts";
export { type AlgorithmOptions, criticLoss, policyLoss } from "./algorithm/options.ts";
export { type PpoData, ppoData } from "./algorithm/ppo.ts";
export { learningRate, type ScheduleOptions } from "./algorithm/schedule.ts";
export { datumLoss, valueDatumLoss } from "./algorithm/token-loss.ts";
export { type LoadOptions, loadRecipe, parseRecipe } from "./config/load-recipe.ts";
export { type Recipe, recipeSchema } from "./config/recipe.ts";
export { type Benchmark, benchmarks } from "./corpus/benchmarks.ts";
export { type ChunkOptions, chunkSpans } from "./corpus/chunk.ts";
export {
  type CorpusProblem,
  type CorpusReport,
  describeReport,
  newCorpusReport,
} from "./corpus/corpus-report.ts";
export type { Passage, PassageSource } from "./corpus/passage.ts";
export { type Question, questionKey } from "./corpus/question.ts";
export { type ReadCorporaOptions, readCorpora } from "./corpus/read-corpora.ts";
export { readCorpus, writeCorpus } from "./corpus/read-corpus.ts";
export { type QueryText, readQueries } from "./corpus/read-queries.ts";
export { readQuestions, writeQuestions } from "./corpus/read-questions.ts";
export { makeWorld, type QuestionSplits, type World, type WorldOptions } from "./corpus/world.ts";
export { EmbeddedEngine, type EmbeddedEngineOptions } from "./engine/embedded-engine.ts";
export type {
  AdamOptions,
  Critic,
  CriticOptions,
  Engine,
  LossReport,
  ReferencePolicy,
  StepReport,
  ValueReport,
} from "./engine/engine.ts";
export { knownModels } from "./engine/known-models.ts";
export { type ModelFiles, openModelFiles } from "./engine/model-files.ts";
export { type ModelOptions, modelOptionsSchema } from "./engine/model-options.ts";
export type { Action, Codec, InvalidReason } from "./environment/action.ts";
export { type CodecName, findCodec } from "./environment/codecs.ts";
export { type EnvironmentOptions, environmentOptionsSchema } from "./environment/environment-options.ts";
export {
  SearchEnvironment,
  type SearchEnvironmentInput,
  type StepResult,
} from "./environment/search-environment.ts";
export type { StopReason } from "./environment/stop-reason.ts";
export type { Turn } from "./environment/turn.ts";
export {
  CheckpointError,
  ConfigError,
  DataFormatError,
  EngineError,
  type ErrorCode,
  FileError,
  ForagerError,
  InterruptedError,
  PolicyError,
  RetrieverError,
  TrainingError,
  UsageError,
} from "./errors.ts";
export { type Comparison, compareResults, IncomparableError } from "./evaluation/compare-results.ts";
export { compareSeeds, type SeedComparison } from "./evaluation/compare-seeds.ts";
export type { EvaluationContract } from "./evaluation/contract.ts";
export { type Decomposition, decompose, underCondition } from "./evaluation/decompose.ts";
export { type EvaluateInput, type Evaluation, evaluate } from "./evaluation/evaluate.ts";
export { type MethodTable, methodTable } from "./evaluation/method-table.ts";
export { answerRecall } from "./evaluation/ranking/answer-recall.ts";
export { compareScores, type MetricComparison } from "./evaluation/ranking/compare-runs.ts";
export { readQrels, writeQrels } from "./evaluation/ranking/qrels.ts";
export type { Qrels, Run } from "./evaluation/ranking/ranking.ts";
export { retrieveRun } from "./evaluation/ranking/retrieve-run.ts";
export { createRun, readRun } from "./evaluation/ranking/run-file.ts";
export { type RunScore, scoreRun } from "./evaluation/ranking/score-run.ts";
export type { EvaluationResult } from "./evaluation/result.ts";
export { type MetricKey, metricKeys } from "./reporting/metric-keys.ts";
export type { MetricRow } from "./reporting/metric-row.ts";
export { writeReport } from "./reporting/report/write-report.ts";
export { RunFolder } from "./reporting/run-folder.ts";
export { renderTranscript } from "./reporting/transcript.ts";
export type { Encoder, EncoderIdentity } from "./retrieval/dense/encoder.ts";
export { explainRetrieval, type Stage } from "./retrieval/explain-retrieval.ts";
export { hybridRetriever } from "./retrieval/hybrid.ts";
export { buildIndexFolder, verifyIndex } from "./retrieval/index-folder.ts";
export { type BuildLanceOptions, buildLanceTable } from "./retrieval/lance/build-lance-table.ts";
export { type LanceRetriever, lanceRetriever } from "./retrieval/lance/lance-retriever.ts";
export {
  Bm25Index,
  type Bm25Options,
  buildBm25Index,
  openIndex,
  saveIndex,
} from "./retrieval/lexical/bm25.ts";
export { cachedRetriever } from "./retrieval/recording/cached-retriever.ts";
export { recordRetriever } from "./retrieval/recording/record-retriever.ts";
export { replayRetriever } from "./retrieval/recording/replay-retriever.ts";
export { createRemoteReranker } from "./retrieval/remote/remote-reranker.ts";
export { createRemoteRetriever } from "./retrieval/remote/remote-retriever.ts";
export { type Reranker, rerankingRetriever } from "./retrieval/rerank.ts";
export type { Retriever, RetrieverIdentity, ScoredPassage } from "./retrieval/retriever.ts";
export { type OpenedSearch, openSearch, type SearchOptions } from "./retrieval/search-folder.ts";
export { createSimulatedRetriever } from "./retrieval/simulated/simulated-retriever.ts";
export { createWebRetriever } from "./retrieval/web/web-retriever.ts";
export { coverExactMatch } from "./reward/cover-exact-match.ts";
export { exactMatch } from "./reward/exact-match.ts";
export { normalizeAnswer } from "./reward/normalize-answer.ts";
export { type Reward, type RewardOptions, reward } from "./reward/reward.ts";
export { tokenF1 } from "./reward/token-f1.ts";
export type {
  Completion,
  Context,
  FinishReason,
  Policy,
  PolicyIdentity,
  SamplingOptions,
} from "./rollout/policy.ts";
export { type RolloutRequest, type RolloutSetting, runRollout } from "./rollout/rollout.ts";
export { type RunRolloutsOptions, runRollouts } from "./rollout/run-rollouts.ts";
export { type Script, type ScriptedPolicy, scriptedPolicy } from "./rollout/scripted-policy.ts";
export type { Segment, Trajectory } from "./rollout/trajectory.ts";
export {
  goldPassageRecall,
  lossMask,
  queries,
  searchCount,
  trajectoryText,
  trajectoryTokens,
} from "./rollout/trajectory-view.ts";
export { createRetrieverApp, type RetrieverAppOptions } from "./serving/retriever-app.ts";
export { type RunningServer, startServer } from "./serving/start-server.ts";
export { isBudgetSpent } from "./shared/budget.ts";
export type { NetworkWorld } from "./shared/network-world.ts";
export type { BytePairTokenizer } from "./tokenizer/byte-pair.ts";
export { type BytePairTraining, trainBytePair } from "./tokenizer/byte-pair-training.ts";
export { renderChat } from "./tokenizer/chat-template.ts";
export { IncrementalDecoder } from "./tokenizer/incremental-decoder.ts";
export type { Tokenizer } from "./tokenizer/tokenizer.ts";
export { readTokenizer, writeTokenizer } from "./tokenizer/tokenizer-file.ts";
export { silentReporter, type TrainingReporter } from "./training/reporter.ts";
export { type TrainingInput, type TrainingSummary, train } from "./training/train.ts";
