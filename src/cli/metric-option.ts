/** A metric that a command was told by name. */
import { UsageError } from "../errors.ts";
import { type MetricName, metricNames } from "../evaluation/item.ts";

/** Throws `UsageError` that lists all metrics. */
export function metricOf(name: string): MetricName {
  const found = metricNames.find((candidate) => candidate === name);
  if (found === undefined)
    throw new UsageError(`there is no metric ${name}; use one of ${metricNames.join(", ")}`);
  return found;
}
