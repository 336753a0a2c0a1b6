/** What a recipe can say about a LanceDB table, and what building one can be told. */
import { z } from "zod";
import { ConfigError } from "../../errors.ts";
import { variableNameSchema } from "../../shared/http-options.ts";
import { hybridOptionsSchema } from "../hybrid.ts";
import { analysisOptionsSchema } from "../lexical/analyze.ts";
import { recordedFoldingSchema } from "../lexical/fold.ts";

/** A folder, or a place in an object store. Tables on LanceDB's own servers are not opened. */
export const lanceUriSchema = z
  .string()
  .min(1)
  .refine((uri) => !uri.includes("://") || /^(s3|gs|az):\/\/[^/]+/.test(uri), {
    error: "must be a folder, or s3://BUCKET/PREFIX (gs:// and az:// likewise)",
  });

export const lanceTableNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, "must be made of letters, digits, _, - and .");

export const lanceStorageSchema = z.strictObject({
  endpoint: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("URL of an S3-compatible server; absent: that of AWS."),
  region: z.string().min(1).optional().describe("Region of the bucket; absent: as the environment says."),
  allowHttp: z
    .boolean()
    .default(false)
    .describe("True: the endpoint may be http://, as that of a server on this machine."),
  accessKeyVariable: variableNameSchema
    .optional()
    .describe("Environment variable that holds the access key; absent: AWS_ACCESS_KEY_ID and its kin count."),
  secretKeyVariable: variableNameSchema
    .optional()
    .describe("Environment variable that holds the secret key; with accessKeyVariable only."),
  sessionTokenVariable: variableNameSchema
    .optional()
    .describe("Environment variable that holds the token of temporary keys."),
});

export const lanceSourceSchema = z.strictObject({
  type: z
    .literal("lance")
    .describe("A LanceDB table made by Forager, on disk or in an object store; LanceDB is installed apart."),
  uri: lanceUriSchema.describe("The folder, or s3://BUCKET/PREFIX, in which the table lies."),
  table: lanceTableNameSchema.default("passages").describe("Name of the table."),
  mode: z
    .enum(["bm25", "dense", "hybrid"])
    .default("bm25")
    .describe(
      "Rank by words, by vectors, or by both; the last two need the encoder the table was built with.",
    ),
  storage: lanceStorageSchema.prefault({}).describe("How an object store is reached."),
  hybrid: hybridOptionsSchema.prefault({}).describe("How the rankings become one; mode hybrid only."),
  concurrency: z.int().min(1).max(256).default(8).describe("Queries of one call that are in flight at once."),
  timeoutMs: z
    .int()
    .min(1)
    .max(3_600_000)
    .default(60_000)
    .describe("Milliseconds that one query may take, at most an hour."),
  cacheMegabytes: z
    .int()
    .min(16)
    .default(1024)
    .describe("Most memory for parts of the indexes that were read, in MiB; a quarter more for metadata."),
  probes: z
    .int()
    .min(1)
    .default(32)
    .describe("Partitions that a search through the vector index looks into; more find more, slower."),
  refine: z
    .int()
    .min(1)
    .max(1000)
    .default(30)
    .describe("Candidates per passage wanted that are compared again by their full vectors."),
});
export type LanceSource = z.output<typeof lanceSourceSchema>;

/** How passages become rows and indexes; kept with the table, and what its answers depend on. */
export const lanceBuildSchema = z.strictObject({
  ...analysisOptionsSchema.shape,
  titleWeight: z
    .int()
    .min(0)
    .max(10)
    .default(3)
    .describe("How many times the words of a title count; 0 leaves titles out."),
  approximateFrom: z
    .int()
    .min(256)
    .default(50_000)
    .describe("Passages from which vectors get an IVF-PQ index; with fewer, every vector is compared."),
});
export type LanceBuildOptions = z.output<typeof lanceBuildSchema>;

/** The options as a table records them. */
export const recordedLanceBuildSchema = lanceBuildSchema.extend({ folding: recordedFoldingSchema });

/** The storage as values: what the variables of a recipe hold, filled in by the caller. Never printed. */
export interface LanceStorage {
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly allowHttp?: boolean | undefined;
  readonly accessKey?: string | undefined;
  readonly secretKey?: string | undefined;
  readonly sessionToken?: string | undefined;
}

/**
 * The storage that a recipe describes, with the values of its variables. Throws `ConfigError` when a variable is not
 * set.
 */
export function storageOf(
  options: z.output<typeof lanceStorageSchema>,
  variable: (name: string) => string | undefined,
): LanceStorage {
  const { endpoint, region, allowHttp } = options;
  const secret = (key: "accessKeyVariable" | "secretKeyVariable" | "sessionTokenVariable") => {
    const name = options[key];
    if (name === undefined) return undefined;
    const value = variable(name);
    if (value) return value;
    throw new ConfigError(`the environment variable ${name}, named by storage.${key}, is not set`, {
      path: `storage.${key}`,
    });
  };
  return {
    endpoint,
    region,
    allowHttp,
    accessKey: secret("accessKeyVariable"),
    secretKey: secret("secretKeyVariable"),
    sessionToken: secret("sessionTokenVariable"),
  };
}
