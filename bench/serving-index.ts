/** The index in process for the serving benchmark: the calls of `serving-load.ts`, one after the other, without HTTP. */

import { openIndex } from "../src/retrieval/index-folder.ts";
import type { Retriever } from "../src/retrieval/retriever.ts";
import { answerRequests } from "./answer-requests.ts";
import { callSizesAndQueries } from "./serving-load.ts";

type Request =
  | { readonly op: "open"; readonly index: string; readonly questions: string }
  | { readonly op: "search"; readonly seconds: number; readonly k: number };

let retriever: Retriever | undefined;
let calls: (readonly string[])[] = [];

async function answer(asked: Request): Promise<object> {
  if (asked.op === "open") {
    retriever = await openIndex(asked.index);
    calls = callSizesAndQueries(asked.questions);
    return {};
  }
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + asked.seconds * 1000;
  let queries = 0;
  for (let number = 0; performance.now() < end; number++) {
    const call = calls[number % calls.length] ?? [];
    const results = await retriever?.retrieve(call, asked.k);
    queries += results?.length ?? 0;
  }
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - start) / 1000, queries, cpuSeconds: (user + system) / 1e6 };
}

await answerRequests(answer);
