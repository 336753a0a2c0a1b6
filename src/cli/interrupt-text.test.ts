import { expect, test } from "vitest";
import { interruptText } from "./interrupt-text.ts";

test("only commands that save say so when they are interrupted", () => {
  for (const verb of ["train", "quickstart"])
    expect(interruptText([verb, "--json"])).toBe("forager: saving; interrupt again to end at once");
  for (const argv of [["index", "train"], ["serve", "retriever"], ["search"], []])
    expect(interruptText(argv)).toBe("forager: stopping; interrupt again to end at once");
});
