/** A recipe that trains in seconds and learns nothing; for tests of what happens around a training. */
export const tinyRecipe = `name: tiny
seed: 3
data:
  type: world
  world: { name: lab, entities: 40, nameWords: 20, relations: 1, trainQuestions: 40, testQuestions: 6 }
environment:
  { codec: compact, prompt: bare, passageTemplate: text, maxSearches: 2, maxTurnTokens: 24, maxObservationTokens: 40 }
model:
  type: fresh
  layers: 1
  width: 16
  heads: 2
  keyValueHeads: 2
  feedForward: 32
  contextLength: 256
  vocabularySize: 300
engine: { type: embedded, threads: 1, tokenBudget: 1024 }
stages:
  - type: supervised
    name: warm-up
    steps: 2
    batchSize: 4
    schedule: { learningRate: 0.01 }
  - type: reinforcement
    name: grpo
    steps: 2
    questionsPerStep: 2
    schedule: { learningRate: 0.001 }
    algorithm: { groupSize: 2 }
evaluation: { n: 6, everySteps: 1 }
`;
