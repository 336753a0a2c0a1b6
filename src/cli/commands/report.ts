/** `forager report`: the run as one HTML file that needs no network. */
import { writeReport } from "../../reporting/report/write-report.ts";
import { RunFolder } from "../../reporting/run-folder.ts";
import { defineCommand } from "../command.ts";

export const reportCommand = defineCommand({
  name: "report",
  summary: "Write the report of a run: curves, before and after, trajectories.",
  args: [{ name: "RUN", doc: "a run folder; it may still be training" }],
  options: {},
  examples: ["report runs/quickstart"],
  async run({ args }, io) {
    const report = await writeReport(await RunFolder.open(args[0] as string));
    io.print(report);
    return { json: { report } };
  },
});
