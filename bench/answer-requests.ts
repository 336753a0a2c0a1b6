/** The measured side of a bench (`worker.ts`): one JSON line on standard output for each on standard input, until these end. */
import { createInterface } from "node:readline";

/** Answers each request with what `answer` gives, or with the message of its error. */
export async function answerRequests<Request>(answer: (request: Request) => Promise<object>): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    let reply: object;
    try {
      reply = { ok: true, ...(await answer(JSON.parse(line) as Request)) };
    } catch (error) {
      reply = { ok: false, error: error instanceof Error ? error.message : String(error) };
    }
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
}
