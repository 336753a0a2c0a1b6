/** What the update of a reinforcement step tells, whatever its algorithm. */
import type { GroupReport } from "../algorithm/group.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

export interface StepUpdate {
  /** What was trained on, and what was left out. */
  readonly groups: GroupReport;
  /** Its metrics, given the seconds it took. */
  readonly row: (seconds: number) => Partial<MetricRow>;
}
