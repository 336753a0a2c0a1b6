/** docs/retrievers.md says what is true: its recipes parse, and its tables hold the dialects, providers and prices. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { replaySourceSchema } from "../recording/replay-retriever.ts";
import { dialectNames, dialects } from "../remote/dialects.ts";
import { remoteSourceSchema } from "../remote/remote-options.ts";
import { simulatedSourceSchema } from "../simulated/simulated-options.ts";
import { providers } from "./providers.ts";
import { webSourceSchema } from "./web-options.ts";

const page = readFileSync(join(import.meta.dirname, "..", "..", "..", "docs", "retrievers.md"), "utf8");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) =>
    line
      .split("|")
      .map((cell) => cell.trim())
      .slice(1, -1),
  );
const rowOf = (name: string): string[] | undefined => rows.find(([first]) => first === `\`${name}\``);

test("every fragment is a retriever that can be made, one of each type", () => {
  const schemas = {
    remote: remoteSourceSchema,
    web: webSourceSchema,
    simulated: simulatedSourceSchema,
    replay: replaySourceSchema,
  };
  const shown = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(
    ([, text]) => parse(text as string) as { type: keyof typeof schemas },
  );
  for (const fragment of shown) expect(schemas[fragment.type].parse(fragment)).toMatchObject(fragment);
  expect(shown.map(({ type }) => type)).toEqual(Object.keys(schemas));
});

test("the providers stand there with key, price and limits", () => {
  for (const [name, { keyVariable, price, maxResults, callsPerSecond }] of Object.entries(providers))
    expect(rowOf(name)?.slice(1, 5)).toEqual([
      keyVariable === undefined ? "-" : `\`${keyVariable}\``,
      String(price),
      String(maxResults),
      String(callsPerSecond),
    ]);
});

test("the dialects stand there, batched or not", () => {
  for (const name of dialectNames)
    expect(rowOf(name)?.[2]).toBe(dialects[name].isBatched ? "`batchSize`" : "one");
});
