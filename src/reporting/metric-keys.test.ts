import { expect, it } from "vitest";
import { stopReasons } from "../environment/stop-reason.ts";
import { isMetricKey, metricKeys, metricsMarkdown, stopKey } from "./metric-keys.ts";

it("has a key for every stop reason", () => {
  for (const reason of stopReasons) expect(isMetricKey(stopKey(reason))).toBe(true);
});

it("names every key room/name and says its unit and meaning", () => {
  for (const [key, { unit, doc }] of Object.entries(metricKeys)) {
    expect(key).toMatch(/^[a-z]+\/[a-zA-Z0-9]+$/);
    expect(unit).not.toBe("");
    expect(doc).toMatch(/^[A-Z].*\.$/);
  }
});

it("knows no other keys, not even those of an object's prototype", () => {
  expect(isMetricKey("reward/unknown")).toBe(false);
  expect(isMetricKey("constructor")).toBe(false);
});

// After a change of the table: npx vitest run --project unit -u src/reporting/metric-keys.test.ts
it("is what docs/metrics.md shows", async () => {
  await expect(metricsMarkdown()).toMatchFileSnapshot("../../docs/metrics.md");
});
