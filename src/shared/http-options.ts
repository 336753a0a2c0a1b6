/** What a recipe can say about calls over HTTP, whoever makes them. */
import { z } from "zod";

/** A base URL: http or https, without query and fragment; credentials in it become Basic authentication. */
export const baseUrlSchema = z.string().refine(
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  },
  { error: "must be a URL such as http://127.0.0.1:8000, without a query" },
);

export const variableNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

/** How calls are made. */
export const callOptionsShape = {
  timeoutMs: z
    .int()
    .min(1)
    .max(300_000)
    .default(30_000)
    .describe("Milliseconds that one attempt may take, at most 300,000."),
  retries: z
    .int()
    .min(0)
    .max(20)
    .default(4)
    .describe(
      "Further attempts after a cause that passes: no connection, time-out, status 408, 425, 429 or 5xx.",
    ),
  backoffMs: z
    .int()
    .min(1)
    .default(500)
    .describe("Milliseconds before the first retry, doubled for each, with jitter; Retry-After is obeyed."),
  concurrency: z.int().min(1).max(1024).default(16).describe("Most calls in flight, and so connections."),
};
