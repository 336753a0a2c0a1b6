/**
 * What a server counts: requests by route and status, their duration, queries and passages, and what runs and waits
 * now. One registry for each app, so that two apps in one process do not mix. `/stats` shows the same numbers as JSON.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";

export interface RequestRecord {
  /** A dialect or a path, never what a client sent. */
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

export interface ServerMetrics {
  readonly registry: Registry;
  record(request: RequestRecord): void;
  /** Counts what was asked of the retriever and found. */
  found(queries: number, passages: number): void;
  stats(): Readonly<Record<string, unknown>>;
}

export interface LoadNow {
  readonly running: number;
  readonly waiting: number;
}

const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** `load` is asked when the numbers are read. */
export function createMetrics(load: () => LoadNow): ServerMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "forager_requests_total",
    help: "Requests answered.",
    labelNames: ["route", "status"] as const,
    registers,
  });
  const seconds = new Histogram({
    name: "forager_request_seconds",
    help: "Time from a request's arrival to its answer, the wait included.",
    labelNames: ["route"] as const,
    buckets,
    registers,
  });
  const queries = new Counter({ name: "forager_queries_total", help: "Queries answered.", registers });
  const passages = new Counter({ name: "forager_passages_total", help: "Passages returned.", registers });
  for (const [name, help, key] of [
    ["forager_running_calls", "Calls that the retriever works on.", "running"],
    ["forager_waiting_calls", "Calls that wait for their turn.", "waiting"],
  ] as const)
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(load()[key]);
      },
    });
  const totals = { requests: 0, failed: 0, queries: 0, passages: 0, seconds: 0, slowest: 0 };
  return {
    registry,
    record: ({ route, status, seconds: took }) => {
      requests.inc({ route, status: String(status) });
      seconds.observe({ route }, took);
      totals.requests++;
      if (status >= 400) totals.failed++;
      totals.seconds += took;
      totals.slowest = Math.max(totals.slowest, took);
    },
    found: (asked, returned) => {
      queries.inc(asked);
      passages.inc(returned);
      totals.queries += asked;
      totals.passages += returned;
    },
    stats: () => ({
      requests: totals.requests,
      failed: totals.failed,
      queries: totals.queries,
      passages: totals.passages,
      mean_seconds: totals.requests === 0 ? 0 : totals.seconds / totals.requests,
      slowest_seconds: totals.slowest,
      ...load(),
    }),
  };
}
