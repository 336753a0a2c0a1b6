/**
 * The values that share a key, keys sorted (numbers by value); values without a key are left out.
 */
export function groupBy<T>(
  values: readonly T[],
  keyOf: (value: T) => string | undefined,
): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const key = keyOf(value);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return new Map([...groups].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })));
}
