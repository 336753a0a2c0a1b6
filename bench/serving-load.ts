/**
 * The client side of the serving benchmark: `connections` clients that each send the next call as soon as the last
 * one is answered, over kept connections, for a number of seconds. A call has 1 to 64 queries. Every answer must have
 * status 200 and the announced length; every 64th is parsed and must hold one list for each query. Answers one
 * JSON line to each JSON line (`worker.ts`).
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { random } from "../src/shared/random.ts";
import { answerRequests } from "./answer-requests.ts";

interface LoadRequest {
  readonly op: "load";
  readonly url: string;
  readonly questions: string;
  readonly connections: number;
  readonly seconds: number;
  readonly k: number;
}

interface Call {
  readonly body: Buffer;
  readonly queries: number;
}

/** The same calls for everybody who measures: sizes 1 to 64, questions drawn with a fixed seed. */
export function callSizesAndQueries(questions: string): (readonly string[])[] {
  const texts = readFileSync(questions, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => String((JSON.parse(line) as { question: unknown }).question));
  const draw = random(7, "serving");
  return Array.from({ length: 512 }, () =>
    Array.from({ length: 1 + draw.below(64) }, () => texts[draw.below(texts.length)] ?? ""),
  );
}

class Load {
  readonly latencies: number[] = [];
  readonly failures = new Map<string, number>();
  queries = 0;
  bytes = 0;
  #next = 0;
  readonly #calls: readonly Call[];
  readonly #agent: Agent;
  readonly #url: string;

  constructor({ url, questions, connections, k }: LoadRequest) {
    this.#url = `${url}/retrieve`;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: "fifo" });
    this.#calls = callSizesAndQueries(questions).map((queries) => ({
      body: Buffer.from(JSON.stringify({ queries, topk: k, return_scores: true })),
      queries: queries.length,
    }));
  }

  async client(end: number): Promise<void> {
    while (performance.now() < end) {
      const number = this.#next++;
      const call = this.#calls[number % this.#calls.length] as Call;
      const start = performance.now();
      try {
        await this.#send(call, number % 64 === 0);
        this.latencies.push(performance.now() - start);
        this.queries += call.queries;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.failures.set(reason, (this.failures.get(reason) ?? 0) + 1);
      }
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send({ body, queries }: Call, isChecked: boolean): Promise<void> {
    const headers = { "content-type": "application/json", "content-length": body.length };
    return new Promise((resolve, reject) => {
      const sent = request(this.#url, { method: "POST", agent: this.#agent, headers }, (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on("data", (chunk: Buffer) => {
          length += chunk.length;
          if (isChecked) chunks.push(chunk);
        });
        response.on("error", reject);
        response.on("end", () => {
          this.bytes += length;
          const announced = Number(response.headers["content-length"] ?? length);
          if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
          else if (announced !== length) reject(new Error("an answer cut short"));
          else if (isChecked && listsIn(chunks) !== queries) reject(new Error("not one list for each query"));
          else resolve();
        });
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

function listsIn(chunks: readonly Buffer[]): number {
  const { result } = JSON.parse(Buffer.concat(chunks).toString()) as { result: unknown[][] };
  return result.filter((found) => found.length > 0).length;
}

async function load(asked: LoadRequest): Promise<object> {
  const run = new Load(asked);
  const start = performance.now();
  const end = start + asked.seconds * 1000;
  await Promise.all(Array.from({ length: asked.connections }, () => run.client(end)));
  const seconds = (performance.now() - start) / 1000;
  run.close();
  const sorted = Float64Array.from(run.latencies).sort();
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  return {
    seconds,
    calls: sorted.length,
    queries: run.queries,
    bytes: run.bytes,
    failures: Object.fromEntries(run.failures),
    p50: at(0.5),
    p99: at(0.99),
  };
}

if (import.meta.url === `file://${process.argv[1]}`) await answerRequests(load);
