/**
 * What a command is: a name, a table of arguments and options, and a function. Parsing and `--help` are made from
 * the table. A command writes nothing by itself: people's text goes through `print`, progress through `note`, and
 * what a program wants is returned as `json`.
 */
import type { ProgressOutput } from "../reporting/progress.ts";

export interface ArgumentSpec {
  /** In capitals, such as `RECIPE`. */
  readonly name: string;
  readonly doc: string;
  readonly isOptional?: boolean;
  /** Takes all that follow; only the last one may. */
  readonly isRepeated?: boolean;
}

export interface OptionSpec {
  /** `list` may be given several times. */
  readonly type: "flag" | "text" | "integer" | "list";
  readonly doc: string;
  readonly short?: string;
  /** What the value is, such as `FOLDER`. */
  readonly value?: string;
  /** Least value of an integer. */
  readonly least?: number;
  readonly isRequired?: boolean;
}

export type OptionTable = Readonly<Record<string, OptionSpec>>;

type OptionValue<Spec extends OptionSpec> = Spec["type"] extends "flag"
  ? boolean
  : Spec["type"] extends "list"
    ? readonly string[]
    :
        | (Spec["type"] extends "integer" ? number : string)
        | (Spec["isRequired"] extends true ? never : undefined);

/** Options as a command gets them: flags default to false, lists to empty, what is not required to undefined. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Key in keyof Table]: OptionValue<Table[Key]>;
};

export interface Input<Table extends OptionTable> {
  readonly args: readonly string[];
  readonly options: OptionValues<Table>;
}

/** What a command may use of the world. */
export interface CommandIo {
  /** The result for people, on standard output; says nothing under `--json`. A line end is added. */
  print(text: string): void;
  /** Progress and remarks, on standard error. A line end is added. */
  note(text: string): void;
  /** For `startProgress`; standard error. */
  readonly progress: ProgressOutput;
  readonly json: boolean;
  /** Whether what is printed may be coloured. */
  readonly color: boolean;
  /** Whether notes may be coloured. */
  readonly noteColor: boolean;
  /** Aborted by the first interrupt. */
  readonly signal: AbortSignal;
  readonly now: () => Date;
}

export interface CommandResult {
  /** Printed as the last line of standard output under `--json`. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Default 0; 1 where the command worked and the news is bad, such as a failed check; 2 where it was refused with a reason for programs. */
  readonly exitCode?: 0 | 1 | 2;
}

export interface Command<Table extends OptionTable = OptionTable> {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** More for `--help`, where a line is not enough. */
  readonly details?: string;
  readonly args: readonly ArgumentSpec[];
  readonly options: Table;
  /** Command lines without the word `forager`. */
  readonly examples: readonly string[];
  run(input: Input<Table>, io: CommandIo): Promise<CommandResult>;
}

/** Fixes the types of a command from its own option table. */
export function defineCommand<const Table extends OptionTable>(command: Command<Table>): Command {
  return command as unknown as Command;
}
