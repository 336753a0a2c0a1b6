// Checks the JSON that ends the output of `forager quickstart --json`: its shape, that the agent learned, and that
// the run folder holds a report. Usage: node check-quickstart.mjs OUTPUT
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const line = readFileSync(process.argv[2], "utf8").trimEnd().split("\n").at(-1);
const result = JSON.parse(line);
const isInterval = (ci) => Array.isArray(ci) && ci.length === 2 && ci[0] <= ci[1];
const isScore = (score) =>
  score.n > 0 && score.em >= 0 && score.em <= 1 && score.searches >= 0 && isInterval(score.ci);
const checks = [
  ["a run folder with report.html", existsSync(join(result.run, "report.html"))],
  ["seconds and peakBytes", result.seconds > 0 && result.peakBytes > 0],
  ["scores before and after with n and interval", isScore(result.before) && isScore(result.after)],
  ["the same questions before and after", result.before.n === result.after.n],
  ["at most 2 GB of memory", result.peakBytes <= 2e9],
  ["a gain in exact match that is surely above 0.2", result.difference.ci[0] > 0.2],
  ["more searches a question after than before", result.after.searches > result.before.searches],
  [
    "a paired difference with interval and p",
    isInterval(result.difference.ci) && result.difference.p >= 0 && result.difference.p <= 1,
  ],
];
const wrong = checks.filter(([, holds]) => !holds).map(([what]) => what);
process.stdout.write(`${line}\n`);
for (const what of wrong) process.stderr.write(`expected ${what}\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;
