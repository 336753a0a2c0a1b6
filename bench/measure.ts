/**
 * Interleaved rounds and their summary. One warm-up round is thrown away; then the sides take turns (A, B, A, B, …),
 * so that a machine that slows down slows both. The ratio is taken within each round, where both saw the same machine.
 */

export interface Summary {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export interface Comparison {
  /** Units per second of each round. */
  readonly ours: readonly number[];
  readonly peer: readonly number[];
}

export type Side = () => Promise<{ readonly seconds: number; readonly tokens: number }>;

/** Rounds that are not counted: memory is touched for the first time in them, which takes longer than the work. */
const warmUpRounds = 2;

/** Runs `rounds` rounds of each side in turn after the warm-up; without a peer, ours alone. */
export async function interleave(rounds: number, ours: Side, peer: Side | undefined): Promise<Comparison> {
  const sides: Readonly<Record<string, Side>> = { ours, ...(peer && { peer }) };
  const rates = await interleaveAll(rounds, sides);
  return { ours: rates.ours ?? [], peer: rates.peer ?? [] };
}

/** The same with any number of sides; units per second of each round, by side. */
export async function interleaveAll<Name extends string>(
  rounds: number,
  sides: Readonly<Record<Name, Side>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(sides) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 1 - warmUpRounds; round <= rounds; round++) {
    for (const name of names) {
      await pause(300); // thread pools spin for a while after their last task; let the other side's come to rest
      const { seconds, tokens } = await sides[name]();
      if (round > 0) rates[name].push(tokens / seconds);
    }
  }
  return rates;
}

/** `values` must not be empty. */
export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    min: at(0),
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    max: at(sorted.length - 1),
  };
}

/** Ours over the peer's, round by round. */
export function ratios({ ours, peer }: Comparison): number[] {
  return ours.flatMap((rate, round) => {
    const other = peer[round];
    return other === undefined ? [] : [rate / other];
  });
}

/** `median (min-max)` with as many digits as make sense for the size. */
export function formatSummary({ min, median, max }: Summary): string {
  return `${formatNumber(median)} (${formatNumber(min)}-${formatNumber(max)})`;
}

export function formatNumber(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US");
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function formatBytes(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** A Markdown table; every row has as many cells as `head`. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
