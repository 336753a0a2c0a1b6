/** Help text, made from the tables that parsing uses, so that the two cannot disagree. */
import type { ArgumentSpec, Command, OptionSpec } from "./command.ts";
import { commonOptions } from "./parse.ts";

/** What `forager --help` prints. */
export function overviewHelp(commands: readonly Command[], version: string): string {
  return [
    `forager ${version}: train, evaluate and serve LLM search agents`,
    "",
    "usage: forager COMMAND [arguments] [options]",
    "",
    ...table(commands.map(({ name, summary }) => [name, summary])),
    "",
    "forager COMMAND --help tells more; --version prints the version.",
    "Exit codes: 0 fine, 1 failed, 2 bad usage or recipe, 130 interrupted with the state saved.",
  ].join("\n");
}

/** What `forager COMMAND --help` prints. */
export function commandHelp(command: Command): string {
  const options = Object.entries({ ...command.options, ...commonOptions } as Record<string, OptionSpec>);
  return [
    `usage: forager ${[command.name, ...command.args.map(argumentForm), "[options]"].join(" ")}`,
    "",
    command.summary,
    ...(command.details === undefined ? [] : ["", command.details]),
    ...section(
      "arguments",
      command.args.map(({ name, doc }) => [name, doc]),
    ),
    ...section(
      "options",
      options.map(([name, spec]) => [optionForm(name, spec), spec.doc]),
    ),
    "",
    "examples:",
    ...command.examples.map((example) => `  forager ${example}`),
  ].join("\n");
}

function section(title: string, rows: readonly (readonly [string, string])[]): readonly string[] {
  return rows.length === 0 ? [] : ["", `${title}:`, ...table(rows)];
}

function argumentForm({ name, isOptional, isRepeated }: ArgumentSpec): string {
  const form = isRepeated ? `${name}...` : name;
  return isOptional ? `[${form}]` : form;
}

function optionForm(name: string, { type, short, value }: OptionSpec): string {
  const form = `${short === undefined ? "" : `-${short}, `}--${name}`;
  return type === "flag" ? form : `${form} ${value ?? "VALUE"}`;
}

function table(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
