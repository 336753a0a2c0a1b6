/**
 * Makes text from outside (passages, questions) harmless: no tag of the action format and no added token of the
 * tokenizer is left in it, so it can neither act as the policy nor end a block. `<answer>` becomes `[answer]`;
 * tags are found in any letter case and with white space inside. Look-alike characters are left alone: they are
 * other tokens, and the codec does not read them.
 */

/** `text` without any of `reserved`; text that holds none comes back unchanged. */
export function neutralize(text: string, reserved: readonly string[]): string {
  return neutralizer(reserved)(text);
}

const maxRounds = 8;

type Neutralize = (text: string) => string;

/** Prepared for each list of tokens: every episode asks for the same. */
const prepared = new Map<string, Neutralize>();
const mostPrepared = 100;

/** `neutralize` prepared for many texts. */
export function neutralizer(reserved: readonly string[]): Neutralize {
  const key = reserved.join("\u0000");
  const known = prepared.get(key);
  if (known !== undefined) return known;
  if (prepared.size >= mostPrepared) prepared.clear();
  const made = prepare(reserved);
  prepared.set(key, made);
  return made;
}

function prepare(reserved: readonly string[]): Neutralize {
  const tokens = reserved.filter((token) => token.trim() !== "").sort((a, b) => b.length - a.length);
  if (tokens.length === 0) return (text) => text;
  const source = tokens.map(patternOf).join("|");
  const found = new RegExp(source, "iu");
  const all = new RegExp(source, "giu");
  return (text) => {
    let result = text;
    for (let round = 0; found.test(result); round++)
      result = result.replace(all, (token) => (round < maxRounds ? defuse(token) : ""));
    return result;
  };
}

const angled = /^<(\/?)([\s\S]*)>$/;

function patternOf(token: string): string {
  const tag = angled.exec(token);
  if (tag === null) return escapeForPattern(token);
  const [, slash, name] = tag;
  return `<\\s*${slash === "/" ? "\\/\\s*" : ""}${escapeForPattern((name as string).trim())}\\s*>`;
}

/** Angled tokens get square brackets; others are broken by a space after their first character. */
function defuse(token: string): string {
  if (angled.test(token)) return `[${token.slice(1, -1).trim()}]`;
  const [first, ...rest] = [...token];
  return rest.length === 0 ? "" : `${first} ${rest.join("")}`;
}

function escapeForPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
