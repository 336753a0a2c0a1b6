/** Values that requests and answers of the Tinker protocol are made of (`wire.ts`). */
import { z } from "zod";

/** A list of finite numbers, checked in one loop: batches hold millions. */
export const numbers = z.custom<readonly number[]>(
  (value) => firstWrong(value, Number.isFinite) === undefined,
  {
    error: ({ input }) => `expected a list of finite numbers, got ${firstWrong(input, Number.isFinite)}`,
  },
);

const isId = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

/** Token ids; whether they are below the vocabulary's size only the server knows. */
export const tokenIds = z.custom<readonly number[]>((value) => firstWrong(value, isId) === undefined, {
  error: ({ input }) => `expected a list of token ids, got ${firstWrong(input, isId)}`,
});

/** What is wrong with a list of numbers in words; undefined where nothing is. */
function firstWrong(value: unknown, isRight: (entry: unknown) => boolean): string | undefined {
  if (!Array.isArray(value)) return value === null ? "null" : `a value of type ${typeof value}`;
  for (let i = 0; i < value.length; i++)
    if (!isRight(value[i])) return `${String(value[i]).slice(0, 40)} as entry ${i}`;
  return undefined;
}

export const optionalText = z.string().nullish();
export const metadata = z.record(z.string(), z.unknown()).nullish();
