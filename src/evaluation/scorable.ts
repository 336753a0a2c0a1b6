/**
 * Gold answers must score 1.0 by the metrics they are the measure of: a question whose every gold answer vanishes when it
 * is normalised ("The", "?") can be answered by nobody, or by any answer that vanishes too.
 */
import { type Question, questionKey } from "../corpus/question.ts";
import { ConfigError } from "../errors.ts";
import { coverExactMatch } from "../reward/cover-exact-match.ts";
import { exactMatch } from "../reward/exact-match.ts";
import { tokenF1 } from "../reward/token-f1.ts";

/** Whether some gold answer, given as the answer, scores 1 in exact match, cover exact match and token F1. */
export function isScorable({ goldAnswers }: Pick<Question, "goldAnswers">): boolean {
  return goldAnswers.some((gold) =>
    [exactMatch, coverExactMatch, tokenF1].every((metric) => metric(gold, goldAnswers) === 1),
  );
}

/** Throws `ConfigError` that names the questions whose gold answers do not score. */
export function requireScorable(questions: readonly Question[]): void {
  const wrong = questions.filter((question) => !isScorable(question));
  if (wrong.length === 0) return;
  const shown = wrong
    .slice(0, 3)
    .map(
      (question) =>
        `${questionKey(question)} (${question.goldAnswers.map((gold) => JSON.stringify(gold)).join(", ")})`,
    );
  const more = wrong.length > shown.length ? ` and ${wrong.length - shown.length} more` : "";
  throw new ConfigError(
    `a gold answer must score 1.0 when it is given as the answer; nothing is left after normalisation of those of ${shown.join(", ")}${more}; correct or remove the question`,
    { path: "data.questions.evaluation" },
  );
}
