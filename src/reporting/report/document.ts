/**
 * The report as one HTML text: everything is inline, and a content security policy with the hashes of our own style
 * and script forbids everything else, the network included. Pure: contents in, text out.
 */
import { createHash } from "node:crypto";
import type { MetricRow } from "../metric-row.ts";
import type { StopRecord } from "../stop-record.ts";
import type { StoredEvaluation } from "../stored-evaluation.ts";
import { type BeforeAfter, beforeAfter, headline, verdict } from "./before-after.ts";
import { clientScript } from "./client.ts";
import { type Figure, learningCurve, trainingFigures } from "./figures.ts";
import { element, embeddedJson, fragment, type Markup, trusted } from "./markup.ts";
import { styleSheet } from "./style.ts";
import { evaluationTable } from "./tables.ts";
import { trajectoryBrowser } from "./trajectory-browser.ts";
import type { TrajectorySample } from "./trajectory-sample.ts";

export interface ReportContents {
  /** Name of the run. */
  readonly name: string;
  readonly recipeYaml: string;
  readonly contract: unknown;
  readonly rows: readonly MetricRow[];
  /** Why the training stopped by itself; absent where it did not. */
  readonly stop?: StopRecord | undefined;
  readonly evaluations: readonly StoredEvaluation[];
  readonly sample: TrajectorySample;
}

/** The whole document. Text from models, documents and recipes is escaped, never markup. */
export function renderDocument(contents: ReportContents): string {
  const { name, rows, evaluations, sample, recipeYaml, contract } = contents;
  const curve = learningCurve(rows, evaluations);
  const figures = trainingFigures(rows);
  const compared = beforeAfter(evaluations);
  const body = element(
    "body",
    {},
    renderHeader(contents, compared),
    element(
      "main",
      {},
      curve && element("section", { class: "part" }, renderFigure(curve, "wide")),
      compared && renderEvaluation(compared),
      figures.length > 0 &&
        element(
          "section",
          { class: "part", id: "training" },
          element("h2", {}, "Training"),
          element(
            "div",
            { class: "grid" },
            figures.map((figure) => renderFigure(figure, "small")),
          ),
        ),
      sample.trajectories.length > 0 && trajectoryBrowser(sample),
      renderSources(recipeYaml, contract),
    ),
    element(
      "footer",
      {},
      element(
        "p",
        {},
        "Made by Forager from the files of the run folder. It loads nothing from the network.",
      ),
    ),
    element("div", { id: "tip", role: "tooltip", hidden: true }),
    element("script", { type: "application/json", id: "trajectory-data" }, embeddedJson(sample.trajectories)),
    element("script", {}, trusted(clientScript)),
  );
  return `<!doctype html>\n${element("html", { lang: "en" }, renderHead(name), body).markup}\n`;
}

function renderHead(name: string): Markup {
  const policy = [
    "default-src 'none'",
    `style-src '${sourceHash(styleSheet)}'`,
    `script-src '${sourceHash(clientScript)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return element(
    "head",
    {},
    element("meta", { charset: "utf-8" }),
    element("meta", { "http-equiv": "Content-Security-Policy", content: policy }),
    element("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
    element("meta", { name: "color-scheme", content: "light dark" }),
    element("title", {}, `${name} – Forager report`),
    element("link", { rel: "icon", href: "data:," }),
    element("style", {}, trusted(styleSheet)),
  );
}

function renderHeader({ name, rows, stop }: ReportContents, compared: BeforeAfter | undefined): Markup {
  const steps = [...new Set(rows.map(({ stage }) => stage))].map((stage) => {
    const last = rows
      .filter((row) => row.stage === stage)
      .reduce((most, { step }) => Math.max(most, step), 0);
    return `${last} steps of ${stage}`;
  });
  const title = compared ? headline(compared) : `Training run ${name}`;
  return element(
    "header",
    {},
    element("p", { class: "eyebrow" }, [name, ...steps].join(" · ")),
    element("h1", {}, lightIntervals(title)),
    stop && element("p", { class: "verdict" }, element("strong", {}, stopSentence(stop))),
    compared && verdict(compared).map((sentence) => element("p", { class: "verdict" }, sentence)),
    rows.length === 0 && !compared && element("p", { class: "verdict" }, "Nothing was measured yet."),
  );
}

function stopSentence({ stage, step, reason, checkpoint }: StopRecord): string {
  return `The training stopped in step ${step} of ${stage}: ${reason}. The last good checkpoint is ${checkpoint}.`;
}

/** The intervals of a headline stand back behind its numbers. */
function lightIntervals(sentence: string): Markup {
  const parts = sentence.split(/(\([^)]*\))/);
  return fragment(
    parts.map((part) => (part.startsWith("(") ? element("span", { class: "interval" }, part) : part)),
  );
}

function renderEvaluation(compared: BeforeAfter): Markup {
  const { split, sampling, seed } = compared.after.result.contract;
  const decoding = sampling.temperature === 0 ? "greedy decoding" : `temperature ${sampling.temperature}`;
  return element(
    "section",
    { class: "part", id: "evaluation" },
    element("h2", {}, compared.before ? "Before and after" : "Evaluation"),
    element(
      "p",
      { class: "caption" },
      `Questions of the ${split} split, ${decoding}, seed ${seed}. In brackets: 95 % bootstrap intervals over questions.`,
    ),
    evaluationTable(compared),
  );
}

function renderFigure(figure: Figure, kind: "wide" | "small"): Markup {
  const withClass = (markup: Markup, name: string): Markup => ({
    markup: markup.markup.replace("<svg", `<svg class="${name}"`),
  });
  const charts =
    kind === "small"
      ? figure.draw({ width: 340, height: 210 })
      : fragment(
          withClass(figure.draw({ width: 1072, height: 380 }), "wide-only"),
          withClass(figure.draw({ width: 368, height: 260 }), "narrow"),
        );
  return element(
    "figure",
    { class: kind },
    element(
      "figcaption",
      {},
      element(kind === "wide" ? "h2" : "h3", {}, figure.title),
      element("p", { class: "caption" }, figure.caption),
    ),
    charts,
  );
}

function renderSources(recipeYaml: string, contract: unknown): Markup {
  const source = (title: string, content: string): Markup =>
    element(
      "details",
      { class: "source" },
      element("summary", {}, title),
      element("pre", { tabindex: 0 }, content),
    );
  return element(
    "section",
    { class: "part", id: "sources" },
    element("h2", {}, "How it was made"),
    source("Recipe, as resolved", recipeYaml),
    source("Contract of the scores", JSON.stringify(contract, null, 2)),
  );
}

function sourceHash(source: string): string {
  return `sha256-${createHash("sha256").update(source).digest("base64")}`;
}
