import fc from "fast-check";
import { expect, test } from "vitest";
import { sendableQuery } from "./queries.ts";

test("a query is cut without leaving half a character", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 20 }), (query, most) => {
      const sent = sendableQuery(query, most);
      expect(sent.length).toBeLessThanOrEqual(most);
      expect(Buffer.from(sent).toString()).toBe(sent);
    }),
  );
});
