import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Keeps some 50 MB alive while twenty times as much comes and goes; prints the largest heap in MB. */
const program = `
const { collectEarly } = await import(process.argv[1]);
if (process.argv[2] === "early") collectEarly();
let most = 0;
const alive = Array.from({ length: 400 }, () => new Array(16384).fill(0.5));
for (let i = 0; i < 8000; i++) {
  alive[i % 400] = new Array(16384).fill(i + 0.5);
  most = Math.max(most, process.memoryUsage().heapTotal);
}
console.log(alive.length > 0 ? Math.round(most / 1e6) : 0);
`;

test("set while a process runs, without a flag from outside, it keeps the heap near what is alive", async () => {
  const module = join(import.meta.dirname, "collect-early.ts");
  const heap = async (how: string): Promise<number> => {
    const argv = ["--import", "tsx", "--input-type=module", "--eval", program, module, how];
    return Number((await promisify(execFile)(process.execPath, argv)).stdout);
  };
  const [late, early] = [await heap("late"), await heap("early")];
  expect(early).toBeLessThan(0.7 * late);
});
