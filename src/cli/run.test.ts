import { describe, expect, test } from "vitest";
import { runForTest } from "../../test/run-cli.ts";
import { commands } from "./commands.ts";
import { packageVersion } from "./package.ts";
import { run } from "./run.ts";

describe("run", () => {
  test("without a command shows the commands and fails as bad usage", async () => {
    const { code, stdout, stderr } = await runForTest();
    expect(code).toBe(2);
    expect(stdout).toBe("");
    for (const { name } of commands) expect(stderr).toContain(`  ${name} `);
  });

  test.each(["--help", "-h", "help"])("%s shows every command", async (word) => {
    const { code, stdout } = await runForTest(word);
    expect(code).toBe(0);
    for (const { name, summary } of commands)
      expect(stdout).toMatch(new RegExp(`${name} +${summary.slice(0, 10)}`));
  });

  test("an error cannot steer the terminal", async () => {
    const { code, stderr } = await runForTest("index", "no\u001b[31msuch.jsonl", "--out", "index");
    expect(code).toBe(1);
    expect(stderr).toContain("no\\x1b[31msuch.jsonl");
  });

  test("--version prints the version of the package", async () => {
    expect(await runForTest("--version")).toMatchObject({
      code: 0,
      stdout: `${packageVersion()}\n`,
      stderr: "",
    });
  });

  test.each(commands.map(({ name }) => name))(
    "%s --help names every argument, option and example",
    async (name) => {
      const command = commands.find((candidate) => candidate.name === name);
      const { code, stdout, stderr } = await runForTest(name, "--help");
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toContain(`usage: forager ${name}`);
      for (const argument of command?.args ?? []) expect(stdout).toContain(argument.doc);
      for (const option of [...Object.keys(command?.options ?? {}), "json", "help"])
        expect(stdout).toMatch(new RegExp(`--${option}\\b`));
      expect(command?.examples.length).toBeGreaterThan(0);
      for (const example of command?.examples ?? []) {
        expect(example.split(" ")[0]).toBe(name);
        expect(stdout).toContain(`  forager ${example}`);
      }
      expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120);
    },
  );

  test.each([
    [["serach"], 'forager: unknown command "serach"; did you mean "search"?'],
    [["search", "index", "query", "--kk", "3"], "forager: search: unknown option --kk"],
    [["search"], "forager: search: INDEX is missing"],
  ])("%j is one line and exit code 2", async (argv, message) => {
    const { code, stdout, stderr } = await runForTest(...argv);
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain(message);
    expect(stderr.trim()).not.toContain("\n");
  });

  test("a failure under --json is an object on the last line of standard output as well", async () => {
    const { code, stdout, json } = await runForTest("search", "/no/such/index", "query", "--json");
    expect(code).toBe(1);
    expect(stdout.trim()).not.toContain("\n");
    expect(json).toMatchObject({ error: { message: expect.stringContaining("/no/such/index") } });
  });

  test("an error that is no one's but ours shows where it came from and asks for a report", async () => {
    let stderr = "";
    const broken = {
      write: () => {
        throw new Error("boom");
      },
    };
    const code = await run(["--version"], {
      stdout: broken,
      stderr: { write: (text) => (stderr += text) },
      signal: new AbortController().signal,
      allowsColor: false,
      now: () => new Date(0),
      clock: () => 0,
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: boom\n +at [\s\S]*this is a bug in forager; please report it/);
  });
});
