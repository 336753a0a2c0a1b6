import { expect, test } from "vitest";
import { LayerSessions } from "./layer-sessions.ts";
import type { Session } from "./session.ts";

test("keeps the two forms met last, and closes each session once", async () => {
  const [made, closed]: [string[], string[]] = [[], []];
  const sessions = new LayerSessions(async ({ name }: { readonly name: string }) => {
    made.push(name);
    return { session: { close: async () => void closed.push(name) } as unknown as Session };
  });
  for (const name of ["a", "b", "a", "c", "a"]) await sessions.get({ name });
  expect(made).toEqual(["a", "b", "c"]);
  expect(closed).toEqual(["b"]);
  await sessions.get({ name: "b" });
  expect(closed).toEqual(["b", "c"]);
  await sessions.close();
  expect(closed.toSorted()).toEqual(["a", "b", "b", "c"]);
});
