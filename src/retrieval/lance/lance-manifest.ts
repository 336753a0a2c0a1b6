/**
 * What is known about a table, kept as JSON in a second table beside it (`NAME_forager`): how it was made, and, once it is
 * finished, from what. It is replaced in one step, and written before the first passage, so that an interrupted build
 * is known as such.
 */
import { z } from "zod";
import { RetrieverError } from "../../errors.ts";
import type { LanceTable } from "./lance-module.ts";
import { recordedLanceBuildSchema } from "./lance-options.ts";
import type { LancePlace } from "./lance-place.ts";
import { singleText } from "./lance-rows.ts";

const LANCE_VERSION = 1;

const settingsSchema = z.strictObject({
  build: recordedLanceBuildSchema,
  encoder: z.strictObject({ name: z.string(), hash: z.string(), dimensions: z.int().min(1) }).nullable(),
});
/** What rows depend on besides the passages. */
export type LanceSettings = z.output<typeof settingsSchema>;

const common = { version: z.literal(LANCE_VERSION), settings: settingsSchema };
const manifestSchema = z.discriminatedUnion("state", [
  z.strictObject({
    state: z.literal("building"),
    ...common,
    /** Which build writes: the last one that was started. */
    builder: z.string().optional(),
  }),
  z.strictObject({
    state: z.literal("finished"),
    ...common,
    count: z.int().min(1),
    corpusHash: z.string().regex(/^[0-9a-f]{64}$/),
    /** Share of the 10 nearest neighbours that the vector index finds; null when all vectors are compared. */
    recall: z.strictObject({ value: z.number(), queries: z.int() }).nullable(),
  }),
]);
export type LanceManifest = z.output<typeof manifestSchema>;
export type FinishedManifest = Extract<LanceManifest, { state: "finished" }>;

export function manifestTable(table: string): string {
  return `${table}_forager`;
}

/** The manifest of a table, or undefined when there is none. Throws `RetrieverError` when it cannot be read. */
export async function readManifest(place: LancePlace, table: string): Promise<LanceManifest | undefined> {
  const found = await place.find(manifestTable(table));
  if (found === undefined) return undefined;
  const what = `cannot read what is known about the table ${place.name}`;
  const rows = await place.attempt(what, () => found.query().select(["manifest"]).limit(2).toArrow());
  found.close();
  let value: unknown;
  try {
    value = JSON.parse(String(rows.getChild("manifest")?.get(0)));
  } catch {
    value = undefined;
  }
  const parsed = manifestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RetrieverError(
    `${what}: expected a manifest of version ${LANCE_VERSION}, got ${z.prettifyError(parsed.error)}; build the table again under another name`,
  );
}

/** Writes or replaces the manifest. */
export async function writeManifest(
  place: LancePlace,
  table: string,
  manifest:
    | Omit<Extract<LanceManifest, { state: "building" }>, "version">
    | Omit<FinishedManifest, "version">,
): Promise<void> {
  const name = manifestTable(table);
  const text = JSON.stringify({ ...manifest, version: LANCE_VERSION });
  const row = singleText(place.arrow, "manifest", text);
  const known = await place.find(name);
  await place.attempt(`cannot write what is known about the table ${place.name}`, async () => {
    let written: LanceTable;
    if (known === undefined) written = await place.connection.createTable(name, row);
    else {
      written = known;
      await known.add(row, { mode: "overwrite" });
    }
    written.close();
  });
}
