/**
 * What a generator answers without a planner, found out once for each question and kept in a file of the run, so that a
 * run that goes on does not ask again. A line holds the hash of what it depends on: lines of other settings are left alone.
 */
import { z } from "zod";
import { appendJsonLines, readJsonLines, repairJsonLines } from "../reporting/json-lines.ts";

const answerSchema = z.object({
  answer: z.exactOptional(z.string()),
  score: z.union([z.literal(0), z.literal(1)]),
});
const baselineSchema = z.object({ direct: answerSchema, rag: answerSchema });
const lineSchema = baselineSchema.extend({ setting: z.string(), question: z.string() });

/** The generator's answers to the question alone, and with the passages that the question itself finds. */
export type Baseline = Readonly<z.infer<typeof baselineSchema>>;

export interface BaselineStore {
  /** Reads the file; afterwards new baselines are added to it, unless it is only read. */
  load(options: { readonly isReadOnly: boolean }): Promise<void>;
  /** The baseline of a question, made by `make` if it is not known; concurrent calls share one. */
  of(question: string, make: () => Promise<Baseline>): Promise<Baseline>;
}

/** A store for one setting; without a file it forgets with the process. */
export function baselineStore(setting: string, file?: string): BaselineStore {
  const known = new Map<string, Promise<Baseline>>();
  let written: string | undefined;
  let last: Promise<void> = Promise.resolve();
  return {
    load: async ({ isReadOnly }) => {
      if (file === undefined) return;
      if (!isReadOnly) {
        await repairJsonLines(file);
        written = file;
      }
      for (const { setting: of, question, ...baseline } of await readJsonLines(file, lineSchema))
        if (of === setting) known.set(question, Promise.resolve(baseline));
    },
    of: (question, make) => {
      const found = known.get(question);
      if (found) return found;
      const made = (async () => {
        const baseline = await make();
        const path = written;
        if (path !== undefined) {
          // One after the other, so that lines stay whole.
          last = last.then(() => appendJsonLines(path, [{ setting, question, ...baseline }]));
          await last;
        }
        return baseline;
      })();
      known.set(question, made);
      // A failure is asked again, not remembered.
      made.catch(() => known.delete(question));
      return made;
    },
  };
}
