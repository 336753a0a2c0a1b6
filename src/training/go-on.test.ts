import { expect, test } from "vitest";
import { ConfigError, FileError, RetrieverError, TrainingError } from "../errors.ts";
import { resumeCommand, tellHowToGoOn } from "./go-on.ts";

test("what the world can mend is told with the command that goes on, ready to paste", () => {
  expect(resumeCommand("runs/my run")).toBe("npx forager train --resume 'runs/my run'");
  const full = new FileError("cannot write x: the disk is full; free some space and run again");
  expect(tellHowToGoOn(full, "runs/a")).toBe(full);
  expect(full.message).toMatch(
    /run again; the run is kept and then goes on with: npx forager train --resume runs\/a$/,
  );
});

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
