import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AnswerAction } from "../environment/action.ts";
import type { Turn } from "../environment/turn.ts";
import { makeTrajectory } from "./made-up.suite.ts";
import { allowsColor, renderTranscript, visibleText } from "./transcript.ts";

describe("a transcript", () => {
  it("shows the episode from question to reward", () => {
    expect(renderTranscript(makeTrajectory(), { color: false, reward: 1, hidePrompt: true })).toBe(
      [
        "question Which river flows through Ostburg?",
        "gold     River Aln",
        "<search> Ostburg </search>",
        '<information>Doc 1(Title: "Ostburg") Ostburg is a town on the River Aln, in the north.</information>',
        "<answer> River Aln </answer>",
        "answer   River Aln  reward 1",
        "",
      ].join("\n"),
    );
  });

  it("colours each line by its source, and nothing without colour", () => {
    const colored = renderTranscript(makeTrajectory(), { color: true });
    expect(colored).toContain("\u001b[2mQuestion: Which river flows through Ostburg?\u001b[0m");
    expect(colored).toContain("\u001b[1m<search> Ostburg </search>\u001b[0m");
    expect(colored).toContain("\u001b[34m<information>");
    expect(renderTranscript(makeTrajectory(), { color: false })).not.toContain("\u001b");
  });

  it("says why there is no answer", () => {
    const trajectory = makeTrajectory({ answer: undefined, stopReason: "turnLimit" });
    expect(renderTranscript(trajectory, { color: false })).toContain("no answer (turnLimit)");
  });

  it("shows what an answer cites, and says of an abstention that it is one", () => {
    const [search] = makeTrajectory().turns;
    const ending = (action: AnswerAction) =>
      renderTranscript(
        makeTrajectory({ turns: [search as Turn, { action }], answer: action.abstains ? undefined : "x" }),
        { color: false },
      );
    expect(ending({ type: "answer", answer: "x", cited: [1, 9] })).toMatch(
      /answer {3}x\ncites {4}\[1\] "?Ostburg"?\ncites {4}\[9\] no such passage\n$/,
    );
    expect(ending({ type: "answer", answer: "", abstains: true })).toMatch(
      /answer {3}none: the agent says that it does not know\n$/,
    );
  });

  it("is coloured on a terminal only, and not against the user's wish", () => {
    expect(allowsColor(true, undefined)).toBe(true);
    expect(allowsColor(true, "")).toBe(true);
    expect(allowsColor(true, "1")).toBe(false);
    expect(allowsColor(false, undefined)).toBe(false);
  });
});

describe("visible text", () => {
  it("shows what would drive the terminal or turn the reading direction", () => {
    expect(visibleText("a\u001b[31mb\u0007\u009bc\u202ed\r\ne\tf\rg")).toBe(
      "a\\x1b[31mb\\x07\\x9bc\\u202ed\ne\tf\\x0dg",
    );
  });

  it("never holds a control character but line end and tab", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(visibleText(text)).not.toMatch(/[^\P{Cc}\n\t]/u);
      }),
    );
  });

  it("leaves all other text as it is", () => {
    expect(visibleText("Zürich 東京 🦊 <b>")).toBe("Zürich 東京 🦊 <b>");
  });
});
