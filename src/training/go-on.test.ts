import { expect, test } from "vitest";
import { ConfigError, EngineError, FileError, RetrieverError, TrainingError } from "../errors.ts";
import { resumeCommand, tellHowToGoOn } from "./go-on.ts";

test("what the world can mend is told with the command that goes on, ready to paste", () => {
  expect(resumeCommand("runs/my run")).toBe("npx forager train --resume 'runs/my run'");
  const full = new FileError("cannot write x: the disk is full; free some space and run again");
  expect(tellHowToGoOn(full, "runs/a")).toBe(full);
  expect(full.message).toMatch(
    /run again; the run is kept and then goes on with: npx forager train --resume runs\/a$/,
  );
});

test.each(["unauthorized", "conflict", "gone", "unreachable", "failed", "lost", "slow", "stale"] as const)(
  "an engine whose trouble passes (%s) is told how it goes on",
  (kind) => {
    const error = new EngineError("the server is away", { kind });
    tellHowToGoOn(error, "runs/a");
    expect(error.message).toMatch(/away; the run is kept and then goes on with: npx forager train --resume /);
  },
);

test.each(["unsupported", "rejected", "malformed"] as const)(
  "an engine that would do the same again (%s) promises nothing",
  (kind) => {
    const error = new EngineError("the engine cannot do it", { kind });
    tellHowToGoOn(error, "runs/a");
    expect(error.message).toBe("the engine cannot do it");
  },
);

test("what says it already, a collapse, a recipe that cannot work and a defect of ours are left as they are", () => {
  const others = [
    new RetrieverError("down; forager train --resume"),
    new TrainingError("the reward fell"),
    new ConfigError("no demonstration fits"),
    new TypeError("x is undefined"),
  ];
  for (const error of others) {
    const { message } = error;
    tellHowToGoOn(error, "runs/a");
    expect(error.message).toBe(message);
  }
});
