import { describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { type Command, defineCommand } from "./command.ts";
import { findCommand, parseCommand } from "./parse.ts";

const command = defineCommand({
  name: "try",
  summary: "Try.",
  args: [
    { name: "FIRST", doc: "the first" },
    { name: "SECOND", doc: "the second", isOptional: true },
  ],
  options: {
    out: { type: "text", value: "FOLDER", doc: "Where." },
    count: { type: "integer", short: "c", least: 1, doc: "How many." },
    set: { type: "list", value: "KEY=VALUE", doc: "Overrides." },
    force: { type: "flag", doc: "Anyway." },
  },
  examples: [],
  run: async () => ({ json: {} }),
});
const demanding: Command = {
  ...command,
  options: { out: { type: "text", doc: "Where.", isRequired: true } },
};
const many: Command = { ...command, args: [{ name: "FILE", doc: "files", isRepeated: true }] };

describe("parseCommand", () => {
  test("fills in what was not given", () => {
    expect(parseCommand(command, ["a"])).toEqual({
      args: ["a"],
      options: { out: undefined, count: undefined, set: [], force: false },
      json: false,
      help: false,
    });
  });

  test("reads every kind of option, before, between and after arguments", () => {
    const line = ["--set", "a=1", "x", "--out=here", "-c", "3", "y", "--force", "--set", "b=2", "--json"];
    expect(parseCommand(command, line)).toEqual({
      args: ["x", "y"],
      options: { out: "here", count: 3, set: ["a=1", "b=2"], force: true },
      json: true,
      help: false,
    });
  });

  test("takes what follows -- as it is, and any number for a repeated argument", () => {
    expect(parseCommand(command, ["--", "--out"]).args).toEqual(["--out"]);
    expect(parseCommand(many, ["a", "b", "c"]).args).toEqual(["a", "b", "c"]);
  });

  test("asks for no argument and no required option when help is wanted", () => {
    expect(parseCommand(demanding, ["--help"]).help).toBe(true);
    expect(parseCommand(demanding, ["-h"]).help).toBe(true);
  });

  test.each([
    [[], command, "try: FIRST is missing (the first)"],
    [["a", "b", "c"], command, '"c" is one argument too many'],
    [["a", "--otu", "x"], command, "unknown option --otu; did you mean --out?"],
    [["a", "--colour"], command, "unknown option --colour (see"],
    [["a", "-x"], command, "unknown option -x"],
    [["a", "--out"], command, "--out needs a value: --out FOLDER"],
    [["a", "--out="], command, "--out needs a value"],
    [["a", "--out", "x", "--out", "y"], command, "--out was given 2 times"],
    [["a", "-c", "0"], command, '-c must be a whole number of at least 1, got "0"'],
    [["a", "--count=2.5"], command, '--count must be a whole number of at least 1, got "2.5"'],
    [["a", "--count", "1e3"], command, 'got "1e3"'],
    [["a", "--force=yes"], command, '--force takes no value, got "yes"'],
    [["a"], demanding, "--out VALUE is missing (Where.)"],
    [[], many, "FILE is missing"],
  ] as const)("%j is refused", (argv, by, message) => {
    expect(() => parseCommand(by, argv)).toThrow(UsageError);
    expect(() => parseCommand(by, argv)).toThrow(message);
    expect(() => parseCommand(by, argv)).toThrow("(see forager try --help)");
  });
});

test("a command is found by its name, a mistyped one is named with the nearest", () => {
  expect(findCommand([command], "try")).toBe(command);
  expect(() => findCommand([command], "tyr")).toThrow('unknown command "tyr"; did you mean "try"?');
  expect(() => findCommand([command], "elephant")).toThrow("known: try");
});
