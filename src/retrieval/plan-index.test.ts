import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import { random } from "../shared/random.ts";
import { fakeEncoder } from "./dense/fake-encoder.fixture.ts";
import { buildIndexFolder } from "./index-folder.ts";
import { planIndex } from "./plan-index.ts";

const total = 4000;
const chance = random(1, "plan");
const word = (): string => `w${Math.floor(2000 * chance.next() ** 3)}`;
const passages: readonly Passage[] = Array.from({ length: total }, (_, i) => ({
  id: `${i}`,
  title: word(),
  text: Array.from({ length: 60 }, word).join(" "),
}));

/** The corpus as it is read, and how much of it was read. */
function reading() {
  let read = 0;
  async function* all() {
    for (const passage of passages) {
      read++;
      yield passage;
    }
  }
  return { passages: all(), shareRead: () => read / total, read: () => read };
}

const settings = { options: {}, memoryBytes: 2 ** 26, now: () => performance.now() };

test("scales a tenth of a corpus to within a fifth of what the whole takes on disk", async () => {
  const folder = await mkdtemp(join(tmpdir(), "forager-planned-"));
  try {
    const built = await buildIndexFolder(passages, join(folder, "index"));
    const { read, ...corpus } = reading();
    // Three milliseconds a passage of the first sample, one of the others, and 25 for each build.
    let calls = 0;
    const now = (): number => 25 * calls++ + read() + 2 * Math.min(read(), total / 10);
    const plan = await planIndex({ ...settings, ...corpus, now, sample: total / 10 });
    expect(plan.passages).toBe(total);
    expect(plan.basis).toMatchObject({ passages: total / 10, share: 0.1 });
    expect(Math.abs(plan.bytes / built.bytes - 1)).toBeLessThan(0.2);
    expect(plan.basis.seconds).toBeCloseTo(0.4, 6);
    expect(plan.seconds).toBeCloseTo(1.225 - 0.4 + 4, 6);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a corpus smaller than the sample is measured whole, and nothing is left behind", async () => {
  const before = (await readdir(tmpdir())).filter((name) => name.startsWith("forager-plan-")).length;
  const plan = await planIndex({ ...settings, ...reading() });
  expect(plan).toMatchObject({ passages: total, basis: { passages: total, share: 1 } });
  expect((await readdir(tmpdir())).filter((name) => name.startsWith("forager-plan-"))).toHaveLength(before);
});

test("plans room for segments beside the index where it does not fit the memory of the build, however few passages", async () => {
  const planWith = async (memoryBytes: number) => planIndex({ ...settings, ...reading(), memoryBytes });
  const [roomy, tight] = [await planWith(2 ** 26), await planWith(2 ** 20)];
  expect([roomy.peakDiskBytes / roomy.bytes, tight.peakDiskBytes / tight.bytes]).toEqual([
    1,
    expect.closeTo(1.3, 4),
  ]);
});

test("plans vectors by the speed of the encoder and the bytes of a row", async () => {
  const encoder = fakeEncoder();
  const plan = await planIndex({ ...settings, ...reading(), dense: { encoder, dtype: "f16" } });
  expect(plan.dense?.bytes).toBe(total * encoder.identity.dimensions * 2);
  expect(plan.dense?.rate).toBeGreaterThan(0);
});
