/**
 * What is said on the first interrupt. Only some commands save what they have; the others just stop. It looks at the
 * first word alone, so that it needs no command to be parsed.
 */

/** Commands that leave a run folder which can be resumed. */
const saving: ReadonlySet<string> = new Set(["train", "quickstart"]);

/** A line for the words after `forager`. */
export function interruptText([verb = ""]: readonly string[]): string {
  return `forager: ${saving.has(verb) ? "saving" : "stopping"}; interrupt again to end at once`;
}
