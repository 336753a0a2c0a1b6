import { describe, expect, it } from "vitest";
import { formatDuration, formatProgress, formatRate, startProgress } from "./progress.ts";

const task = { label: "grpo", total: 20, unit: "steps" };

function recorder(isTerminal: boolean, columns = 200) {
  const written: string[] = [];
  const clock = { ms: 0 };
  const output = {
    write: (text: string) => void written.push(text),
    now: () => clock.ms,
    isTerminal,
    columns,
  };
  return { written, clock, progress: startProgress(task, output) };
}

describe("a line of progress", () => {
  it("says what is done, how fast, how long it still takes, and the live score", () => {
    expect(formatProgress({ ...task, done: 5, elapsedMs: 10_000, note: "reward 0.61" })).toBe(
      "grpo ━━━━──────────── 5/20 steps · 2.0 s each · 0:30 left · reward 0.61",
    );
  });

  it("has no rate before something is done, and the time it took at the end", () => {
    expect(formatProgress({ ...task, done: 0, elapsedMs: 10 })).toBe("grpo ──────────────── 0/20 steps");
    expect(formatProgress({ ...task, done: 20, elapsedMs: 10_000 })).toBe(
      "grpo ━━━━━━━━━━━━━━━━ 20/20 steps · 2.0 steps/s · 0:10",
    );
    expect(formatProgress({ ...task, total: 0, done: 0, elapsedMs: 0 })).toContain("0/0");
  });

  it("writes durations and rates as people do", () => {
    expect([0, 7_400, 754_000, 11_045_000].map(formatDuration)).toEqual(["0:00", "0:07", "12:34", "3:04:05"]);
    expect([1234, 12.3, 0.31].map((rate) => formatRate(rate, "steps"))).toEqual([
      "1234 steps/s",
      "12 steps/s",
      "3.2 s each",
    ]);
    expect(formatRate(0.31, "MB")).toBe("0.31 MB/s");
  });
});

describe("progress on a terminal", () => {
  it("rewrites one line, not more than ten times a second, and ends it", () => {
    const { written, clock, progress } = recorder(true);
    for (let done = 1; done <= 20; done++) {
      clock.ms += 50;
      progress.update(done);
    }
    progress.finish("reward 0.9");
    expect(written).toHaveLength(12);
    expect(written.slice(0, -1).every((text) => text.startsWith("\r\u001b[K") && !text.includes("\n"))).toBe(
      true,
    );
    expect(written.at(-2)).toContain("20/20 steps · 20 steps/s · 0:01 · reward 0.9");
    expect(written.at(-1)).toBe("\n");
  });

  it("cuts a line that is too long, since a wrapped one cannot be rewritten", () => {
    const { written, progress } = recorder(true, 20);
    progress.update(1);
    expect(written[0]?.replace("\r\u001b[K", "")).toBe("grpo ━────────────…");
  });

  it("prints other text above itself", () => {
    const { written, progress } = recorder(true);
    progress.update(1);
    progress.print("a transcript");
    expect(written.slice(1)).toEqual(["\r\u001b[Ka transcript\n", expect.stringContaining("1/20")]);
  });
});

describe("progress in a pipe", () => {
  it("writes a line every ten seconds and one at the end", () => {
    const { written, clock, progress } = recorder(false);
    for (let done = 1; done <= 20; done++) {
      clock.ms += 2_000;
      progress.update(done);
    }
    progress.finish();
    expect(written.map((text) => /(\d+)\/20/.exec(text)?.[1])).toEqual(["5", "10", "15", "20", "20"]);
    expect(written.every((text) => text.endsWith("\n") && !text.includes("\r"))).toBe(true);
  });
});
