/** Every command, in the order of `forager --help`. */
import type { Command } from "./command.ts";
import { askCommand } from "./commands/ask.ts";
import { compareCommand } from "./commands/compare.ts";
import { completeCommand } from "./commands/complete.ts";
import { demonstrateCommand } from "./commands/demonstrate.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { evalCommand } from "./commands/eval.ts";
import { exportCommand } from "./commands/export.ts";
import { indexCommand } from "./commands/index-corpus.ts";
import { modelsCommand } from "./commands/models.ts";
import { planCommand } from "./commands/plan.ts";
import { quickstartCommand } from "./commands/quickstart.ts";
import { reportCommand } from "./commands/report.ts";
import { scoreCommand } from "./commands/score.ts";
import { searchCommand } from "./commands/search.ts";
import { serveCommand } from "./commands/serve.ts";
import { sweepCommand } from "./commands/sweep.ts";
import { tableCommand } from "./commands/table.ts";
import { trainCommand } from "./commands/train.ts";

export const commands: readonly Command[] = [
  quickstartCommand,
  doctorCommand,
  demonstrateCommand,
  trainCommand,
  sweepCommand,
  evalCommand,
  compareCommand,
  tableCommand,
  askCommand,
  completeCommand,
  modelsCommand,
  reportCommand,
  exportCommand,
  planCommand,
  indexCommand,
  searchCommand,
  serveCommand,
  scoreCommand,
];
