/**
 * Your own documents as a world to search: index a few passages, search them, play one episode by a script in place of a
 * model, and score it. In a project of yours the imports come from "forager".
 *
 *   npx tsx examples/own-documents.ts
 */
import {
  buildBm25Index,
  environmentOptionsSchema,
  type Passage,
  type Question,
  renderTranscript,
  reward,
  runRollout,
  scriptedPolicy,
} from "../src/index.ts";

const passages: readonly Passage[] = [
  { id: "ada", title: "Ada Lovelace", text: "Ada Lovelace worked with Charles Babbage on his engine." },
  { id: "babbage", title: "Charles Babbage", text: "Charles Babbage was born in London in 1791." },
  { id: "turing", title: "Alan Turing", text: "Alan Turing was born in London in 1912." },
];
const question: Question = {
  id: "1",
  dataset: "mine",
  text: "When was the man born with whom Ada Lovelace worked?",
  goldAnswers: ["1791"],
  goldPassages: ["ada", "babbage"],
};

const retriever = await buildBm25Index(passages);
const [found = []] = await retriever.retrieve(["Ada Lovelace"], 2);
for (const { passage, score } of found) console.log(`${score.toFixed(2)}  ${passage.title}`);

const policy = scriptedPolicy([
  "<think> With whom did she work? </think><search> Ada Lovelace </search>",
  "<think> With Charles Babbage. </think><search> When was Charles Babbage born? </search>",
  "<think> Now it is known. </think><answer> 1791 </answer>",
]);
const trajectory = await runRollout({
  policy,
  retriever,
  environment: environmentOptionsSchema.parse({ k: 1, maxSearches: 2 }),
  sampling: { temperature: 0, topP: 1, topK: 0 },
  question,
  group: question.id,
  sample: 0,
  seed: 1,
});
const { value, parts } = reward(trajectory, {
  type: "format",
  structure: 0.2,
  finalFormat: 0.1,
  retrieval: 0,
});
console.log(`\n${renderTranscript(trajectory, { color: false, reward: value, hidePrompt: true })}`);
console.log(parts);
