/** A process that encodes made-up passages into the folder named by its first argument, slowly, until it is killed. */
import type { Passage } from "../../corpus/passage.ts";
import type { PassageStore } from "../passage-store.ts";
import { buildDense } from "./build-dense.ts";
import { type FakeEncoder, fakeEncoder } from "./fake-encoder.fixture.ts";

export const passages: PassageStore = {
  count: 400,
  get: (position): Passage => ({
    id: `${position}`,
    title: `t${position}`,
    text: `word${position % 7} of ${position}`,
  }),
};

export async function build(folder: string, encoder: FakeEncoder): Promise<void> {
  await buildDense(passages, encoder, { folder, partSize: 16, threads: 1, now: () => performance.now() });
}

if (process.argv[1] === import.meta.filename) {
  const encoder = fakeEncoder();
  const slow: FakeEncoder = {
    ...encoder,
    encodePassages: async (part, options) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return await encoder.encodePassages(part, options);
    },
  };
  await build(process.argv[2] as string, slow);
}
