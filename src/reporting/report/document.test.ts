import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { makeRecord, makeTrajectory } from "../made-up.suite.ts";
import type { MetricRow } from "../metric-row.ts";
import { type ReportContents, renderDocument } from "./document.ts";
import { sampleTrajectories } from "./trajectory-sample.ts";

const attack = '</script><img src=x onerror="alert(1)">';
const rows = Array.from(
  { length: 20 },
  (_, index): MetricRow => ({
    stage: attack,
    step: index + 1,
    "reward/mean": index / 20,
    "search/count": 1,
    "stop/answer": 1,
  }),
);
const { question, ...rest } = makeTrajectory();
const hostile = makeTrajectory({
  ...rest,
  question: { ...question, text: attack, goldAnswers: [attack], dataset: attack },
  segments: [{ source: "environment", text: attack, tokens: [1] }],
  answer: attack,
});
const contents: ReportContents = {
  name: attack,
  recipeYaml: `name: ${attack}`,
  contract: { note: attack },
  rows,
  evaluations: [],
  sample: sampleTrajectories([
    { name: "grpo", records: [makeRecord({ trajectory: hostile, stage: attack })] },
  ]),
};

describe("the document", () => {
  const html = renderDocument(contents);

  it("shows hostile text from every source as text", () => {
    expect(html).not.toContain("<img");
    expect(html.match(/<script/g)).toHaveLength(2);
    expect(html.match(/<\/script>/g)).toHaveLength(2);
  });

  it("allows its own style and script by their hashes and nothing else", () => {
    const policy =
      /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1]?.replaceAll("&#39;", "'") ??
      "";
    const hashOf = (name: string): string => {
      const source = new RegExp(`<${name}>([\\s\\S]*?)</${name}>`).exec(html)?.[1] ?? "";
      return `${name}-src 'sha256-${createHash("sha256").update(source).digest("base64")}'`;
    };
    expect(policy.split("; ")).toEqual([
      "default-src 'none'",
      hashOf("style"),
      hashOf("script"),
      "img-src data:",
      "base-uri 'none'",
      "form-action 'none'",
    ]);
  });

  it("names no address and has no inline style or handler, which the policy would forbid", () => {
    expect(html).not.toMatch(/https?:\/\//);
    expect(html.replace(/<script[\s\S]*<\/script>/, "")).not.toMatch(/<[^>]*\s(?:style|on\w+)=/);
  });

  it("draws a chart for what was measured and none for what was not", () => {
    expect(html).toContain("Searches per question");
    expect(html).toContain("How episodes end");
    expect(html).not.toContain("KL divergence");
    expect(html.replaceAll(/<script[\s\S]*?<\/script>/g, "")).not.toMatch(/NaN|undefined|Infinity/);
  });

  it("can be made of a run that has just begun", () => {
    const empty = renderDocument({
      ...contents,
      name: "new",
      rows: [],
      sample: { total: 0, trajectories: [] },
    });
    expect(empty).toContain("Nothing was measured yet.");
  });

  it("says why a training stopped by itself", () => {
    const stop = {
      stage: "grpo",
      step: 7,
      reason: `the loss became ${attack}`,
      checkpoint: "runs/a/checkpoints/5",
    };
    const stopped = renderDocument({ ...contents, stop });
    expect(stopped).toContain("The training stopped in step 7 of grpo: the loss became &lt;/script&gt;");
    expect(stopped).toContain("The last good checkpoint is runs/a/checkpoints/5.");
    expect(stopped).not.toContain("<img");
  });

  it("is the same for the same run", () => {
    expect(renderDocument(contents)).toBe(html);
  });
});
