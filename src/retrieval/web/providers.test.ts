/** Requests and replies in the shapes that the providers document; the contents are made up. */
import { describe, expect, test } from "vitest";
import { type ProviderName, providerNames, providers, type SearchSettings } from "./providers.ts";

const settings: SearchSettings = { url: "", key: "KEY", depth: "basic", language: "en", country: "us" };

function requestOf(name: ProviderName, more: Partial<SearchSettings> = {}) {
  const provider = providers[name];
  return provider.request("largest lake & more", 3, { ...settings, url: provider.url, ...more });
}

describe("requests", () => {
  test("of Serper", () => {
    expect(requestOf("serper")).toEqual({
      method: "POST",
      url: "https://google.serper.dev/search",
      headers: { "x-api-key": "KEY" },
      body: { q: "largest lake & more", num: 10, hl: "en", gl: "us" },
    });
  });

  test("of Tavily", () => {
    expect(requestOf("tavily", { depth: "advanced" })).toEqual({
      method: "POST",
      url: "https://api.tavily.com/search",
      headers: { authorization: "Bearer KEY" },
      body: { query: "largest lake & more", max_results: 3, search_depth: "advanced", include_answer: false },
    });
  });

  test.each([
    [
      "brave",
      "https://api.search.brave.com/res/v1/web/search?q=largest+lake+%26+more&count=3&text_decorations=false&search_lang=en&country=us",
      { "x-subscription-token": "KEY" },
    ],
    ["searxng", "http://127.0.0.1:8080/search?q=largest+lake+%26+more&format=json&language=en", undefined],
    [
      "serpapi",
      "https://serpapi.com/search.json?engine=google&q=largest+lake+%26+more&num=10&hl=en&gl=us&api_key=KEY",
      undefined,
    ],
    [
      "google-cse",
      "https://www.googleapis.com/customsearch/v1?q=largest+lake+%26+more&num=3&cx=engine&hl=en&gl=us&key=KEY",
      undefined,
    ],
  ] as const)("of %s", (name, url, headers) => {
    const request = requestOf(name, { engineId: "engine" });
    expect(request).toEqual({ method: "GET", url, ...(headers && { headers }) });
  });

  test("cost what they are billed", () => {
    expect(providers.serper.billed(10, settings)).toBe(1);
    expect(providers.serper.billed(11, settings)).toBe(2);
    expect(providers.tavily.billed(3, { ...settings, depth: "advanced" })).toBe(2);
  });

  test("to Brave hold at most 50 words", () => {
    const { url } = providers.brave.request("word ".repeat(80), 3, { ...settings, url: providers.brave.url });
    expect(new URL(url).searchParams.get("q")?.split(" ")).toHaveLength(50);
  });
});

/** For each provider a reply with one result, and one without results. */
const replies: Record<
  ProviderName,
  { readonly full: unknown; readonly empty: unknown; readonly snippet?: string }
> = {
  serper: {
    full: {
      searchParameters: { q: "x", type: "search" },
      organic: [
        { title: "Lake", link: "https://a.test/", snippet: "A lake.", date: "2 days ago", position: 1 },
      ],
      credits: 1,
    },
    empty: { searchParameters: { q: "x" }, credits: 1 },
  },
  tavily: {
    full: {
      query: "x",
      answer: null,
      images: [],
      results: [
        {
          title: "Lake",
          url: "https://a.test/",
          content: "A lake.",
          score: 0.9,
          raw_content: null,
          published_date: "2 days ago",
        },
      ],
      response_time: 1.1,
    },
    empty: { query: "x", results: [] },
  },
  brave: {
    full: {
      type: "search",
      query: { original: "x" },
      web: {
        type: "search",
        results: [
          {
            title: "Lake",
            url: "https://a.test/",
            description: "A lake.",
            extra_snippets: ["Deep."],
            age: "2 days ago",
          },
        ],
      },
    },
    empty: { type: "search", query: { original: "x" } },
    snippet: "A lake.\nDeep.",
  },
  searxng: {
    full: {
      query: "x",
      number_of_results: 0,
      results: [
        {
          url: "https://a.test/",
          title: "Lake",
          content: "A lake.",
          engine: "e",
          score: 1,
          publishedDate: "2 days ago",
        },
      ],
      answers: [],
      unresponsive_engines: [],
    },
    empty: { query: "x", results: [] },
  },
  serpapi: {
    full: {
      search_metadata: { status: "Success" },
      organic_results: [
        { position: 1, title: "Lake", link: "https://a.test/", snippet: "A lake.", date: "2 days ago" },
      ],
    },
    empty: {
      search_metadata: { status: "Success" },
      error: "Google hasn't returned any results for this query.",
    },
  },
  "google-cse": {
    full: {
      kind: "customsearch#search",
      searchInformation: { totalResults: "1" },
      items: [{ title: "Lake", link: "https://a.test/", snippet: "A lake." }],
    },
    empty: { kind: "customsearch#search", searchInformation: { totalResults: "0" } },
  },
};

describe.each(providerNames)("replies of %s", (name) => {
  const { full, empty, snippet = "A lake." } = replies[name];
  const { parse } = providers[name];

  test("become results", () => {
    const date = name === "google-cse" ? {} : { date: "2 days ago" };
    expect(parse(full)).toEqual([{ url: "https://a.test/", title: "Lake", snippet, ...date }]);
  });

  test("without results are empty", () => {
    expect(parse(empty)).toEqual([]);
  });

  test.each([{ message: "Unauthorized" }, [], null, "text", {}])("of another form are said: %j", (reply) => {
    expect(parse(reply)).toMatch(/^expected \{"\w+": a list\}/);
  });
});

test("the box above the results comes first when it is taken from a page", () => {
  const { parse } = providers.serper;
  const organic = [{ title: "Lake", link: "https://a.test/", snippet: "A lake." }, { title: "no link" }];
  const box = { title: "Box", answer: "42", snippet: "Why", link: "https://b.test/" };
  expect(parse({ answerBox: box, organic })).toMatchObject([
    { url: "https://b.test/", snippet: "42\nWhy" },
    { url: "https://a.test/" },
  ]);
  expect(parse({ answerBox: { answer: "42" }, organic })).toHaveLength(1);
});
