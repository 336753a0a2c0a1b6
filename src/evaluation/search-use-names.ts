/** What `search-use.ts` measures of each episode. */

/** In the order of tables. */
export const searchUseNames = [
  "redundantSearches",
  "searchesAfterEvidence",
  "passagesSeen",
  "answerSupported",
  "abstained",
  "citationPrecision",
  "citationRecall",
] as const;
export type SearchUseName = (typeof searchUseNames)[number];

/** What each means, in a sentence. */
export const searchUseDocs: Readonly<Record<SearchUseName, string>> = {
  redundantSearches: "searches whose query was asked before, or that found passages and none that was new",
  searchesAfterEvidence:
    "searches after all gold passages, or a passage with a gold answer where none are marked, were shown",
  passagesSeen: "different passages that were found",
  answerSupported:
    "1 when the answer stands word for word in a passage that was shown, else 0; yes and no are left out",
  abstained: "1 when the agent said that it does not know, else 0",
  citationPrecision: "share of the cited passages that are evidence",
  citationRecall: "share of the evidence that is cited",
};
