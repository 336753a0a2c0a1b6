/** What a recipe can say about web search. */
import { z } from "zod";
import { baseUrlSchema, callOptionsShape, variableNameSchema } from "../../shared/http-options.ts";
import { providerNames, providers } from "./providers.ts";

const maxCharacters = z
  .int()
  .min(100)
  .default(2000)
  .describe(
    "Most characters of a page that become the passage: the part that shares most words with the query.",
  );
const dollars = z.number().min(0);

export const pagesOptionsSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("none").describe("A passage is the snippet of the search result.") }),
  z.strictObject({
    type: z.literal("direct").describe("Each page is fetched from its server, from public addresses only."),
    maxCharacters,
    timeoutMs: z.int().min(1).max(300_000).default(10_000).describe("Milliseconds for one page."),
    maxBytes: z.int().min(1).default(4_000_000).describe("Larger pages are left out."),
    concurrency: z.int().min(1).max(256).default(16).describe("Most pages fetched at once."),
  }),
  z.strictObject({
    type: z.literal("jina").describe("Each page is read by Jina Reader, which also runs its scripts."),
    maxCharacters,
    url: baseUrlSchema.default("https://r.jina.ai").describe("Where Jina Reader listens."),
    keyVariable: variableNameSchema
      .default("JINA_API_KEY")
      .describe("Environment variable that holds the key of Jina."),
    pricePerPage: dollars
      .default(0.0005)
      .describe("Dollars a page, for the budget; Jina bills tokens, this is some 10,000 of them."),
    callsPerSecond: z.number().positive().default(8).describe("Most pages a second."),
  }),
]);

export const webSourceSchema = z
  .strictObject({
    type: z.literal("web").describe("A web search service."),
    provider: z.enum(providerNames).describe("Which service is asked."),
    url: baseUrlSchema
      .refine((text) => !/^[a-z]+:\/\/[^/]*@/.test(text), "must not hold credentials")
      .optional()
      .describe(
        "Another address of the service, such as that of your SearXNG with /search; absent: its own.",
      ),
    keyVariable: variableNameSchema
      .optional()
      .describe("Environment variable that holds the key; absent: the usual one, such as SERPER_API_KEY."),
    engineId: z.string().min(1).optional().describe("Id of the search engine (cx); `google-cse` needs it."),
    language: z
      .string()
      .regex(/^[a-z]{2}(-[a-zA-Z]+)?$/, "must be a code such as en")
      .optional()
      .describe("Language of the results, such as en; `tavily` has none."),
    country: z
      .string()
      .regex(/^[a-z]{2}$/, "must be a code of two small letters such as us")
      .optional()
      .describe("Country of the results, such as us; `tavily` and `searxng` have none."),
    depth: z
      .enum(["basic", "advanced"])
      .default("basic")
      .describe("`advanced` searches longer and costs twice as much; `tavily` alone has it."),
    budget: z
      .strictObject({
        maxCalls: z.int().min(0).optional().describe("Most calls that are billed; absent: no limit."),
        maxDollars: dollars.optional().describe("Most dollars at the prices below; absent: no limit."),
      })
      .default({})
      .describe("What the search may cost; once it is spent every search fails with an error that says so."),
    pricePerCall: dollars
      .optional()
      .describe("Dollars a billed call; absent: the list price of the service, see docs/retrievers.md."),
    callsPerSecond: z
      .number()
      .positive()
      .optional()
      .describe("Most calls a second; absent: what the smallest plan of the service allows."),
    pages: pagesOptionsSchema
      .prefault({ type: "none" })
      .describe("Whether passages are snippets or the text of the pages."),
    ...callOptionsShape,
    cacheEntries: z
      .int()
      .min(1)
      .default(10_000)
      .describe("Answers kept in memory, so that a query asked again costs nothing."),
  })
  .refine(({ provider, engineId }) => (provider === "google-cse") === (engineId !== undefined), {
    error: "provider google-cse needs engineId, and no other provider has one",
    path: ["engineId"],
  })
  .refine(({ provider, depth }) => depth === "basic" || provider === "tavily", {
    error: "only provider tavily has depth advanced",
    path: ["depth"],
  })
  .refine(({ provider, language }) => language === undefined || provider !== "tavily", {
    error: "provider tavily has no language",
    path: ["language"],
  })
  .refine(({ provider, country }) => country === undefined || !["tavily", "searxng"].includes(provider), {
    error: "providers tavily and searxng have no country",
    path: ["country"],
  })
  .refine(({ provider, keyVariable }) => keyVariable === undefined || providers[provider].keyVariable, {
    error: "provider searxng has no key",
    path: ["keyVariable"],
  });

export type WebRetrieverOptions = z.output<typeof webSourceSchema>;
export type PagesOptions = z.output<typeof pagesOptionsSchema>;
