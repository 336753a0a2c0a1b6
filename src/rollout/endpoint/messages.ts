/**
 * An episode as messages of a chat. The prompt is what the user says. What follows is either one message of the
 * assistant that is still being written, observations within it (as Search-R1 trains and samples), or turns: what the
 * policy wrote is the assistant's, what the environment answered the user's.
 */
import type { Context, ContextPart } from "../policy.ts";

export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** The messages for a context, and whether its last message is to be gone on with. */
export function messagesOf(
  { text, parts }: Pick<Context, "text" | "parts">,
  continuation: "prefix" | "messages",
): { readonly messages: readonly Message[]; readonly isOpen: boolean } {
  const all = parts ?? [{ source: "prompt", text }];
  const opening = textOf(all.filter(({ source }) => source === "prompt"));
  const later = all.filter(({ source, text: written }) => source !== "prompt" && written !== "");
  const user: Message = { role: "user", content: opening };
  if (later.length === 0) return { messages: [user], isOpen: false };
  if (continuation === "prefix")
    return { messages: [user, { role: "assistant", content: textOf(later) }], isOpen: true };
  return { messages: [user, ...turns(later)], isOpen: false };
}

function textOf(parts: readonly ContextPart[]): string {
  return parts.map(({ text }) => text).join("");
}

/** One message for each run of parts of one source. */
function turns(parts: readonly ContextPart[]): Message[] {
  const messages: Message[] = [];
  for (const { source, text } of parts) {
    const role = source === "policy" ? "assistant" : "user";
    const last = messages.at(-1);
    if (last?.role === role) messages[messages.length - 1] = { role, content: last.content + text };
    else messages.push({ role, content: text });
  }
  return messages;
}
