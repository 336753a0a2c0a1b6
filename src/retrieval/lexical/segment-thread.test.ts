import { expect, test } from "vitest";
import { settingsOf } from "./bm25-options.ts";
import { SegmentBuilder } from "./postings.ts";
import { SegmentThread } from "./segment-thread.ts";

const options = settingsOf({});
const passages = Array.from({ length: 3000 }, (_, i) => ({
  title: `Title ${i % 7}`,
  text: `word${i % 50} rivers of the ${i % 3 === 0 ? "Donau" : "Elbe"} number ${i}`,
}));

test("makes the segments that a builder makes in place, one after the other", async () => {
  const builder = new SegmentBuilder(options);
  builder.startAt(5);
  const thread = new SegmentThread({ options, first: 5 });
  try {
    for (const part of [passages.slice(0, 2100), passages.slice(2100)]) {
      for (const passage of part) {
        builder.add(passage);
        await thread.add(passage);
      }
      expect(thread.passageCount).toBe(part.length);
      expect(await thread.take()).toEqual(builder.take());
      expect(thread.passageCount).toBe(0);
    }
  } finally {
    await thread.close();
  }
});

test("stops when it is closed", async () => {
  const thread = new SegmentThread({ options, first: 0 });
  for (const passage of passages) await thread.add(passage);
  const taking = expect(thread.take()).rejects.toThrow("the build was stopped");
  await thread.close();
  await taking;
  await expect(thread.take()).rejects.toThrow("the build was stopped");
});
