import { expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { limitsWith } from "./limits.ts";

test("a time limit that no timer can keep is refused, since it would be over at once", () => {
  expect(limitsWith({ requestMs: 2_147_483_000 }).requestMs).toBe(2_147_483_000);
  const tooLong = () => limitsWith({ requestMs: 2_147_484_000 });
  expect(tooLong).toThrow(ConfigError);
  expect(tooLong).toThrow("must be at most 2147483 s, got 2147484");
});
