/**
 * Which charts a run has: metric rows in, figures out. A figure without values is left out. Stages follow each
 * other on the x axis; a figure whose values come from one stage alone counts that stage's own steps.
 */

import { stopReasons } from "../../environment/stop-reason.ts";
import { contractDifferences } from "../../evaluation/contract.ts";
import { type MetricKey, stopKey } from "../metric-keys.ts";
import type { MetricRow } from "../metric-row.ts";
import type { StoredEvaluation } from "../run-folder.ts";
import type { Size } from "./chart-frame.ts";
import { type ChartContent, lineChart, type Point, type Series, smooth, stackedChart } from "./charts.ts";
import type { Markup } from "./markup.ts";
import { makeTimeline, partsOf, pointsOf, type Timeline } from "./timeline.ts";

export interface Figure {
  readonly title: string;
  /** What the axis means, with its unit, and how to read it. */
  readonly caption: string;
  readonly draw: (size: Size) => Markup;
}

interface Line {
  readonly key: MetricKey;
  readonly label: string;
}

interface Plan {
  readonly title: string;
  readonly caption: string;
  readonly lines: readonly Line[];
  readonly isShare?: boolean;
  /** Set for values without noise, which are never smoothed. */
  readonly isExact?: boolean;
}

/** Charts of lines, in the order of the page. */
const linePlans: readonly Plan[] = [
  {
    title: "Searches per question",
    caption: "Mean number of searches carried out in a trajectory.",
    lines: [{ key: "search/count", label: "searches" }],
  },
  {
    title: "Length",
    caption: "Tokens of a trajectory, mean.",
    lines: [
      { key: "length/contextTokens", label: "whole" },
      { key: "length/observationTokens", label: "observations" },
      { key: "length/policyTokens", label: "policy" },
    ],
  },
  {
    title: "KL divergence",
    caption: "Nats per policy token, against the policy that sampled and against the reference.",
    lines: [
      { key: "kl/sampling", label: "sampling" },
      { key: "kl/reference", label: "reference" },
    ],
  },
  {
    title: "Clipped tokens",
    caption: "Share of policy tokens whose probability ratio was clipped.",
    lines: [{ key: "clip/fraction", label: "clipped" }],
  },
  {
    title: "Critic",
    caption: "Share of the variance of the returns that the critic explains before each update; 1 is all.",
    lines: [{ key: "critic/explainedVariance", label: "explained" }],
  },
  {
    title: "Error of the critic",
    caption: "Half the squared error of its values, clipped as it is trained.",
    lines: [{ key: "critic/loss", label: "loss" }],
  },
  {
    title: "Entropy",
    caption: "Mean negative log-probability of sampled tokens, nats.",
    lines: [{ key: "entropy/sampled", label: "entropy" }],
  },
  {
    title: "Gradient norm",
    caption: "Euclidean norm before clipping.",
    lines: [{ key: "gradient/norm", label: "norm" }],
  },
  {
    title: "Loss",
    caption: "Nats per trained token; supervised and RL losses are not comparable.",
    lines: [{ key: "loss/value", label: "loss" }],
  },
  {
    title: "Groups and turns without use",
    caption: "Shares of groups whose rewards are all equal, and of turns that are no valid action.",
    lines: [
      { key: "group/rejected", label: "no signal" },
      { key: "search/invalid", label: "invalid" },
    ],
  },
  {
    title: "Deficiencies of searching",
    caption:
      "Shares of trajectories without a search, with a malformed action, with a query asked twice, with any of them.",
    lines: [
      { key: "deficiency/anyDeficiency", label: "any" },
      { key: "deficiency/malformedAction", label: "malformed" },
      { key: "deficiency/duplicateQuery", label: "duplicate" },
      { key: "deficiency/noSearch", label: "no search" },
    ],
  },
  {
    title: "Answers shown by searches",
    caption: "Share of trajectories to which a search showed a gold answer, and of passages that hold one.",
    lines: [
      { key: "search/answerRecall", label: "recall" },
      { key: "search/answerAccuracy", label: "accuracy" },
    ],
  },
  {
    title: "Learning rate",
    caption: "Of the last update of each step.",
    lines: [{ key: "optimizer/learningRate", label: "rate" }],
    isExact: true,
  },
];

/** From this many points on the raw values stand back behind a smoothed line. */
const smoothFrom = 16;

/** The learning curve: training reward behind, held-out exact match with intervals in front. */
export function learningCurve(
  rows: readonly MetricRow[],
  evaluations: readonly StoredEvaluation[],
): Figure | undefined {
  const timeline = makeTimeline(rows, ["reward/mean"]);
  if (timeline.rows.length === 0) return undefined;
  const points = comparable(evaluations).flatMap(({ stage, step, result }): Point[] => {
    const { em } = result.summary.overall;
    const x = timeline.place(stage, step);
    return x === undefined || em === undefined ? [] : [{ x, y: em.mean, interval: em.ci }];
  });
  const series: Series[] = [
    ...smoothed({ points: pointsOf(timeline, "reward/mean"), color: 0, label: "training" }),
    { kind: "points", points: points.sort((a, b) => a.x - b.x), color: 1, label: "held-out" },
  ];
  const isSmoothed = series.length > 2;
  return {
    title: "Learning curve",
    caption: `Training: mean reward of each step${isSmoothed ? ", raw (thin) and as a moving average" : ""}. Held-out: exact match with 95 % intervals.`,
    draw: (size) =>
      lineChart({ title: "Learning curve", series, xLabel: timeline.xLabel, stages: timeline.stages }, size),
  };
}

/** The evaluations under the contract of the run's own, not those of other questions or settings made later. */
function comparable(evaluations: readonly StoredEvaluation[]): StoredEvaluation[] {
  const own = evaluations.find(({ name }) => name === "before") ?? evaluations[0];
  if (!own) return [];
  return evaluations.filter(
    ({ result }) => contractDifferences(own.result.contract, result.contract).length === 0,
  );
}

/** All other charts of the run. */
export function trainingFigures(rows: readonly MetricRow[]): Figure[] {
  const lines = linePlans.map((plan) => lineFigure(rows, plan));
  const [searches, ...others] = lines;
  return [searches, stopFigure(rows), ...others, timeFigure(rows)].filter((figure) => figure !== undefined);
}

function lineFigure(rows: readonly MetricRow[], plan: Plan): Figure | undefined {
  const timeline = makeTimeline(
    rows,
    plan.lines.map(({ key }) => key),
  );
  const series = plan.lines.flatMap(({ key, label }, color): Series[] => {
    const points = pointsOf(timeline, key);
    if (points.length === 0) return [];
    return plan.isExact ? [{ kind: "line", points, label, color }] : smoothed({ points, label, color });
  });
  return makeFigure(plan, series, { timeline, draw: lineChart });
}

function stopFigure(rows: readonly MetricRow[]): Figure | undefined {
  const keys = stopReasons.map((reason) => stopKey(reason));
  const timeline = makeTimeline(rows, keys);
  const series = stopReasons.map((reason, color): Series => {
    const points = partsOf(timeline, stopKey(reason));
    return { label: wordsOf(reason), points, color: [5, 1, 3, 4, 0, 2][color] as number, kind: "line" };
  });
  const plan = { title: "How episodes end", caption: "Share of trajectories by stop reason.", isShare: true };
  return makeFigure(plan, series, { timeline, draw: stackedChart });
}

function timeFigure(rows: readonly MetricRow[]): Figure | undefined {
  const timeline = makeTimeline(rows, ["time/rollout", "time/update"]);
  const rollout = partsOf(timeline, "time/rollout");
  const update = partsOf(timeline, "time/update");
  const other = partsOf(timeline, "time/step").map(({ x, y }, index) => ({
    x,
    y: Math.max(0, y - (rollout[index]?.y ?? 0) - (update[index]?.y ?? 0)),
  }));
  const series: Series[] = [
    { label: "rollout", points: rollout, color: 0, kind: "line" },
    { label: "update", points: update, color: 1, kind: "line" },
    { label: "other", points: other, color: 5, kind: "line" },
  ];
  return makeFigure({ title: "Time of a step", caption: "Seconds of wall time." }, series, {
    timeline,
    draw: stackedChart,
  });
}

function makeFigure(
  plan: Pick<Plan, "title" | "caption" | "isShare">,
  series: readonly Series[],
  how: { readonly timeline: Timeline; readonly draw: (content: ChartContent, size: Size) => Markup },
): Figure | undefined {
  if (how.timeline.rows.length === 0) return undefined;
  const { xLabel, stages } = how.timeline;
  const content = {
    title: plan.title,
    series,
    xLabel,
    stages,
    ...(plan.isShare && { yDomain: [0, 1] as const }),
  };
  return { title: plan.title, caption: plan.caption, draw: (size) => how.draw(content, size) };
}

/** The raw values behind and their moving average in front; short lines are shown as they are. */
function smoothed({ points, color, label }: Pick<Series, "points" | "color" | "label">): Series[] {
  if (points.length < smoothFrom) return [{ kind: "line", points, color, label }];
  const average = smooth(points, Math.max(2, Math.round(points.length / 24)));
  return [
    { kind: "faint", points, color, label },
    { kind: "line", points: average, color, label },
  ];
}

/** `turnLimit` as `turn limit`. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
