/**
 * A `tokenizer.json` as `@huggingface/tokenizers` must be given it to cut text as the Rust library does: steps that it
 * takes for something else (other classes of characters, a `behavior` it does not look at) are spelt out as patterns it
 * computes alike. What cannot be spelt out is refused by name (`findUnfaithful`).
 *
 * Known to differ still: the lower case of a final Greek sigma; two added tokens of which one holds the other, where
 * only one is matched in normalised text.
 */

/** One step before the model; its fields are those of the file. */
export type Step = Readonly<Record<string, unknown>>;

/** The same file, its steps before the model spelt out. */
export function spellSteps<T>(file: T): T {
  return respelt(file, (step) => spellings[step.type as string]?.(step));
}

/** The same file with the words of `ByteLevel` spelt out too, which takes half as much time again. */
export function spellWords<T>(file: T): T {
  return respelt(file, (step) => (step.type === "ByteLevel" ? byteLevelWords(step) : undefined));
}

/** White space for the Rust library or for the words of this one's `ByteLevel`, but not for both. */
export const disputedSpace = /[\u0085\ufeff]/;

/** A file with another object for each step before the model for which `respell` has one. */
function respelt<T>(value: T, respell: (step: Step) => object | undefined): T {
  if (Array.isArray(value)) return value.map((item) => respelt(item, respell)) as T;
  if (value === null || typeof value !== "object") return value;
  const fields = value as Step;
  const other = respell(fields);
  if (other) return other as T;
  const held = ["normalizer", "normalizers", "pre_tokenizer", "pretokenizers"].filter(
    (name) => name in fields,
  );
  if (held.length === 0) return value;
  const spelt = held.map((name) => [name, respelt(fields[name], respell)] as const);
  return { ...fields, ...Object.fromEntries(spelt) } as T;
}

function split(pattern: string, behavior: "Isolated" | "Removed", invert = false): object {
  return { type: "Split", pattern: { Regex: pattern }, behavior, invert };
}

/** The matches of a pattern are the pieces. */
function pieces(pattern: string): object {
  return split(pattern, "Removed", true);
}

function sequence(...pretokenizers: object[]): object {
  return { type: "Sequence", pretokenizers };
}

const whiteSpace = "\\p{White_Space}";
const wordCharacters = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";
const punctuation = "[\\p{P}$+<=>^`|~]";

const spellings: Readonly<Record<string, (step: Step) => object | undefined>> = {
  Split: spellSplit,
  CharDelimiterSplit: ({ delimiter }) => split(patternOf({ String: delimiter }) as string, "Removed"),
  // Any character of the class N is a digit (as ½ is), not only those that `\d` matches.
  Digits: ({ individual_digits }) =>
    spellCut("\\p{N}", individual_digits === true ? "isolated" : "contiguous"),
  Punctuation: ({ behavior = "Isolated" }) => spellCut(punctuation, behaviorOf(behavior)),
  Whitespace: () => pieces(`[${wordCharacters}]+|[^${wordCharacters}${whiteSpace}]+`),
  WhitespaceSplit: () => pieces(`[^${whiteSpace}]+`),
  BertPreTokenizer: () => sequence(pieces(`[^${whiteSpace}]+`), spellCut(punctuation, "isolated") as object),
  FixedLength: ({ length }) => pieces(`[\\s\\S]{1,${length}}`),
  // The normaliser, which knows another white space than `String.trim`.
  Strip: ({ strip_left, strip_right }) => ({
    type: "Sequence",
    normalizers: [
      ...(strip_left === true ? [removed(`\\A${whiteSpace}+`)] : []),
      ...(strip_right === true ? [removed(`${whiteSpace}+\\z`)] : []),
    ],
  }),
};

function removed(pattern: string): object {
  return { type: "Replace", pattern: { Regex: pattern }, content: "" };
}

/** `MergedWithPrevious` and `merged_with_previous` are the same. */
function behaviorOf(name: unknown): string {
  return String(name).toLowerCase().replaceAll("_", "");
}

function spellSplit(step: Step): object | undefined {
  const pattern = patternOf(step.pattern);
  const behavior = behaviorOf(step.behavior);
  if (pattern === undefined) return undefined;
  if (step.invert !== true) return behavior === "isolated" ? undefined : spellCut(pattern, behavior);
  if (behavior === "removed") return undefined;
  // Inverted, matches and what lies between them change places.
  const swapped: Readonly<Record<string, string>> = {
    mergedwithprevious: "mergedwithnext",
    mergedwithnext: "mergedwithprevious",
  };
  return spellCut(pattern, swapped[behavior] ?? behavior);
}

/** As a regular expression; undefined where the step has none. */
function patternOf(pattern: unknown): string | undefined {
  const { Regex, String: text } = (pattern ?? {}) as { readonly Regex?: string; readonly String?: string };
  return Regex ?? text?.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** A step that cuts a text at the matches of one pattern; undefined for a behaviour there is not. */
function spellCut(pattern: string, behavior: string): object | undefined {
  const match = `(?>${pattern})`;
  const between = `(?!${pattern})[\\s\\S]`;
  if (behavior === "isolated") return split(pattern, "Isolated");
  if (behavior === "removed") return split(pattern, "Removed");
  if (behavior === "contiguous") return split(`(?:${pattern})+`, "Isolated");
  if (behavior === "mergedwithprevious") return pieces(`(?:${between})*${match}|[\\s\\S]+`);
  if (behavior === "mergedwithnext") return pieces(`${match}(?:${between})+|${match}|(?:${between})+`);
  return undefined;
}

/** How GPT-2 cuts text into words, with white space spelt out. */
const words =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+";

function byteLevelWords(step: Step): object | undefined {
  if (step.use_regex === false) return undefined;
  // An empty match at the start would be found between the halves of a surrogate pair too.
  const space = { type: "Replace", pattern: { Regex: "\\A[^ ]" }, content: " $&" };
  return sequence(...(step.add_prefix_space === false ? [] : [space]), pieces(words), {
    ...step,
    add_prefix_space: false,
    use_regex: false,
  });
}

/** What of a file the library would compute otherwise than the Rust library, in words; undefined where nothing is. */
export function findUnfaithful(file: Step): string | undefined {
  const model = (file.model ?? {}) as Step;
  const { type, continuing_subword_prefix: prefix } = model;
  if (type !== undefined && !["BPE", "Unigram", "WordPiece"].includes(type as string))
    return `its model is of the type ${JSON.stringify(type)}`;
  if (type === "BPE" && typeof prefix === "string" && prefix !== "")
    return `pieces inside a word begin with ${JSON.stringify(prefix)} (continuing_subword_prefix)`;
  if (type === "BPE" && model.fuse_unk === true && findsUnknown(model, file.pre_tokenizer))
    return "unknown characters become one token within a word, but not beyond it (fuse_unk)";
  if (type === "Unigram" && model.byte_fallback === true)
    return "its model, a Unigram, falls back to bytes (byte_fallback)";
  const added = (file.added_tokens ?? []) as readonly Step[];
  const single = added.find((token) => token.single_word === true);
  if (single !== undefined)
    return `the token ${JSON.stringify(single.content)} is matched as a word alone (single_word)`;
  return JSON.stringify(file.normalizer ?? null).includes('"type":"Precompiled"')
    ? "text is normalised by a table of SentencePiece's (Precompiled)"
    : undefined;
}

/** Whether characters without a token can meet at the border of two words. */
function findsUnknown({ unk_token, byte_fallback }: Step, preTokenizer: unknown): boolean {
  const steps = JSON.stringify(preTokenizer ?? null);
  const coversAll = byte_fallback === true || steps.includes('"type":"ByteLevel"');
  return (
    typeof unk_token === "string" &&
    !coversAll &&
    steps !== "null" &&
    !steps.startsWith('{"type":"Metaspace"')
  );
}
