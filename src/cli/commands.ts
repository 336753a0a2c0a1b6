/** Every command, in the order of `forager --help`. */
import type { Command } from "./command.ts";
import { compareCommand } from "./commands/compare.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { indexCommand } from "./commands/index-corpus.ts";
import { reportCommand } from "./commands/report.ts";
import { searchCommand } from "./commands/search.ts";

export const commands: readonly Command[] = [
  compareCommand,
  indexCommand,
  searchCommand,
  reportCommand,
  doctorCommand,
];
