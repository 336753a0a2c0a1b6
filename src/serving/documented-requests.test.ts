/** `docs/serving.md`: each request it shows is sent, and must give the answer it shows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dialects } from "./dialects.ts";
import { defaultLimits } from "./limits.ts";
import { appOf, wordRetriever } from "./serving.fixture.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/serving.md"), "utf8");

interface Shown {
  readonly line: string;
  readonly answer: string;
}

const shown: readonly Shown[] = [...page.matchAll(/^(curl .*)\n```\n\n```json\n([^`]*)\n```$/gm)].map(
  (match) => ({
    line: match[1] as string,
    answer: match[2] as string,
  }),
);

const rerank = async (query: string, documents: readonly string[]): Promise<number[]> =>
  documents.map((document) => (document.includes(query) ? 1 : 0));

test.each(shown)("$line", async ({ line, answer }) => {
  const [, quoted, plain, body, header] =
    /^curl (?:'([^']+)'|(\S+))(?: -d '([^']*)')?(?: -H '([^']*)')?$/.exec(line) ?? [];
  const path = new URL(`http://${quoted ?? plain}`);
  const app = appOf(wordRetriever(), { name: "my-index", rerank });
  const response = await app.request(path.pathname + path.search, {
    ...(body !== undefined && { method: "POST", body }),
    ...(header !== undefined && { headers: [header.split(": ") as [string, string]] }),
  });
  expect(await response.json()).toEqual(JSON.parse(answer));
});

test("shows a request for every row of the table of dialects, and for the other routes", () => {
  const rows = dialects.map(({ name, path, rule }) => `| \`${path}\` | ${rule} | ${name} |`);
  for (const row of rows) expect(page).toContain(row);
  const paths = shown.map(({ line }) => /localhost:8000(\/\w+)/.exec(line)?.[1]);
  for (const path of ["/retrieve", "/search", "/batch_search", "/access", "/rerank", "/v1"])
    expect(paths).toContain(path);
  expect(shown.length).toBeGreaterThanOrEqual(dialects.length + 4);
});

test("names every limit with its default", () => {
  for (const [name, value] of Object.entries(defaultLimits))
    expect(page).toContain(`| \`${name}\` | ${value} |`);
});
