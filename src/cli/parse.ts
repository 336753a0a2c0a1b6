/** Command line to arguments and options, by a command's own table. Every mistake is a `UsageError` with the nearest known word. */
import { parseArgs } from "node:util";
import { nearest, suggestion } from "../config/nearest.ts";
import { UsageError } from "../errors.ts";
import type { Command, Input, OptionSpec, OptionTable } from "./command.ts";

/** Options that every command has. */
export const commonOptions = {
  json: { type: "flag", doc: "Print one JSON object as the last line of standard output." },
  help: { type: "flag", short: "h", doc: "Show this help." },
} as const satisfies OptionTable;

export type ParsedCommand = Input<OptionTable> & { readonly json: boolean; readonly help: boolean };

/** Parses what follows the command's name. With `--help` arguments may be missing. Throws `UsageError`. */
export function parseCommand(command: Command, argv: readonly string[]): ParsedCommand {
  const table: OptionTable = { ...command.options, ...commonOptions };
  const { tokens, positionals } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Object.entries(table).map(([name, { type, short }]) => [
        name,
        { type: type === "flag" ? ("boolean" as const) : ("string" as const), ...(short && { short }) },
      ]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const found = new Map<string, (string | true)[]>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const spec = table[token.name];
    if (spec === undefined) throw unknownOption(command, token.rawName, table);
    found.set(token.name, [...(found.get(token.name) ?? []), checkValue(command, spec, token)]);
  }
  const options: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(table)) {
    const values = found.get(name) ?? [];
    if (values.length > 1 && spec.type !== "list" && spec.type !== "flag")
      throw usage(command, `--${name} was given ${values.length} times; once is enough`);
    options[name] = optionValue(spec, values);
  }
  const { json, help, ...own } = options;
  if (help !== true) {
    checkArguments(command, positionals);
    checkRequired(command, own);
  }
  return {
    args: positionals,
    options: own as Input<OptionTable>["options"],
    json: json === true,
    help: help === true,
  };
}

interface OptionToken {
  readonly rawName: string;
  readonly value?: string | undefined;
}

function checkValue(command: Command, spec: OptionSpec, { rawName, value }: OptionToken): string | true {
  if (spec.type === "flag") {
    if (value !== undefined) throw usage(command, `${rawName} takes no value, got "${value}"`);
    return true;
  }
  if (value === undefined || value === "")
    throw usage(command, `${rawName} needs a value: ${rawName} ${spec.value ?? "VALUE"}`);
  if (spec.type !== "integer") return value;
  const least = spec.least ?? 0;
  if (!/^-?\d+$/.test(value) || !Number.isSafeInteger(Number(value)) || Number(value) < least)
    throw usage(command, `${rawName} must be a whole number of at least ${least}, got "${value}"`);
  return value;
}

function optionValue(spec: OptionSpec, values: readonly (string | true)[]): unknown {
  if (spec.type === "flag") return values.length > 0;
  if (spec.type === "list") return values;
  const [value] = values;
  return spec.type === "integer" && value !== undefined ? Number(value) : value;
}

function unknownOption(command: Command, rawName: string, table: OptionTable): UsageError {
  const near = nearest(rawName.replace(/^-+/, ""), Object.keys(table));
  const advice = near === undefined ? "" : `; did you mean --${near}?`;
  return usage(command, `unknown option ${rawName}${advice}`);
}

function checkArguments(command: Command, args: readonly string[]): void {
  const required = command.args.filter(({ isOptional }) => !isOptional);
  const missing = required[args.length];
  if (missing !== undefined) throw usage(command, `${missing.name} is missing (${missing.doc})`);
  const most = command.args.at(-1)?.isRepeated ? Number.POSITIVE_INFINITY : command.args.length;
  const extra = args[most];
  if (extra !== undefined)
    throw usage(command, `"${extra}" is one argument too many; put text with spaces in quotes`);
}

function checkRequired(command: Command, options: Readonly<Record<string, unknown>>): void {
  for (const [name, spec] of Object.entries(command.options))
    if (spec.isRequired && options[name] === undefined)
      throw usage(command, `--${name} ${spec.value ?? "VALUE"} is missing (${spec.doc})`);
}

function usage(command: Command, message: string): UsageError {
  return new UsageError(`${command.name}: ${message} (see forager ${command.name} --help)`);
}

/** The command called `name`. Throws `UsageError` with the nearest name. */
export function findCommand(commands: readonly Command[], name: string): Command {
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const names = commands.map((candidate) => candidate.name);
  throw new UsageError(`unknown command "${name}"${suggestion(name, names)} (see forager --help)`);
}
