/** Reads what a judge that is a language model says. A judge that does not keep to its task is data: undefined. */

/** Behind the reasoning of models that think aloud; empty where it was cut off before it ended. */
export function behindThoughts(reply: string): string {
  return reply
    .replace(/^[\s\S]*<\/think>/, "")
    .replace(/<think>[\s\S]*$/, "")
    .trim();
}

/** Whether the first word is yes or no, in any letter case, marks around it left aside. */
export function readVerdict(reply: string): "yes" | "no" | undefined {
  const word = /^[^\p{L}\p{N}]*(yes|no)(?![\p{L}\p{N}])/iu.exec(behindThoughts(reply))?.[1];
  return word?.toLowerCase() as "yes" | "no" | undefined;
}

/** The first number, if it is a whole one from 1 to 5. */
export function readGrade(reply: string): number | undefined {
  const number = /-?\d+(?:[.,]\d+)?/.exec(behindThoughts(reply))?.[0];
  return number !== undefined && /^[1-5]$/.test(number) ? Number(number) : undefined;
}
