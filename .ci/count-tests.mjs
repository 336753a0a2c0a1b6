// Prints `PASSED FAILED` for a vitest JSON report. A file that could not be loaded counts as one failure, and so does
// an exit code that no failed test explains. Usage: node count-tests.mjs REPORT EXIT_CODE
import { readFileSync } from "node:fs";

const [, , report, exitCode] = process.argv;
const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
const broken = testResults.filter(
  (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
).length;
const explained = numFailedTests + broken;
const failed = explained === 0 && exitCode !== "0" ? 1 : explained;
process.stdout.write(`${numPassedTests} ${failed}\n`);
