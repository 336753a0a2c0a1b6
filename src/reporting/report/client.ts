/**
 * The script of the page: a browser of trajectories. It runs in the reader's browser, not here: the functions are
 * written into the document as text (`clientScript`), so they may use each other and the page, but nothing that is
 * imported. Text from outside enters the page as text nodes only.
 */
import { tokenTipScript } from "./client-token-tip.ts";
import type { SegmentView, SpanView, TrajectoryView } from "./trajectory-view.ts";

/** One trajectory, or the same question before and after. */
type Entry = readonly [TrajectoryView] | readonly [TrajectoryView, TrajectoryView];

interface Filters {
  readonly set: string;
  readonly step: string;
  readonly stop: string;
  readonly hops: string;
  readonly reward: string;
  readonly change: string;
  readonly words: string;
}

function startBrowser(): void {
  const data = JSON.parse(
    document.getElementById("trajectory-data")?.textContent ?? "[]",
  ) as TrajectoryView[];
  const form = document.getElementById("filters") as HTMLFormElement | null;
  if (!form || data.length === 0) return;
  const entries = pairUp(data);
  fillFilters(form, entries);
  const update = (): void => showList(entries, readFilters(form));
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
}

/** The trajectories in the order of the list; a question answered before and after is one entry of two. */
function pairUp(data: readonly TrajectoryView[]): Entry[] {
  return data.flatMap((item): Entry[] => {
    const other = item.set === "before" ? "after" : item.set === "after" ? "before" : undefined;
    const partner = data.find(({ key, set }) => set === other && key === item.key);
    if (!partner) return [[item]];
    return item.set === "before" ? [[item, partner]] : [];
  });
}

/** Gives each choice the values that occur; a choice without a choice is hidden. */
function fillFilters(form: HTMLFormElement, entries: readonly Entry[]): void {
  const data = entries.flat();
  const values: Record<string, string[]> = {
    set: data.map(({ set }) => set),
    step: data.map((item) => `${item.stage} ${item.step}`),
    stop: data.map(({ stopReason }) => stopReason),
    hops: data.flatMap(({ hops }) => (hops === undefined ? [] : [String(hops)])).sort(),
    change: entries.flatMap((entry) => (entry.length > 1 ? ["better", "worse", "same"] : [])),
  };
  for (const [name, all] of Object.entries(values)) {
    const select = form.elements.namedItem(name) as HTMLSelectElement;
    const distinct = [...new Set(all)];
    if (name !== "change")
      for (const value of distinct) select.append(new Option(name === "stop" ? spaced(value) : value, value));
    (select.closest("label") as HTMLElement).hidden = distinct.length < 2;
  }
}

function readFilters(form: HTMLFormElement): Filters {
  const value = (name: string): string => (form.elements.namedItem(name) as HTMLInputElement).value;
  return {
    set: value("set"),
    step: value("step"),
    stop: value("stop"),
    hops: value("hops"),
    reward: value("reward"),
    change: value("change"),
    words: value("words").trim().toLowerCase(),
  };
}

function isMatch(item: TrajectoryView, filters: Filters): boolean {
  const { set, step, stop, hops, reward, words } = filters;
  return (
    (set === "" || item.set === set) &&
    (step === "" || `${item.stage} ${item.step}` === step) &&
    (stop === "" || item.stopReason === stop) &&
    (hops === "" || String(item.hops) === hops) &&
    (reward === "" || (worthOf(item) > 0 ? "some" : "none") === reward) &&
    (words === "" || `${item.question} ${item.answer ?? ""}`.toLowerCase().includes(words))
  );
}

/** What a trajectory was worth: its reward, or for an evaluation its exact match. */
function worthOf(item: TrajectoryView): number {
  return item.reward ?? item.scores?.em ?? 0;
}

function changeOf([before, after]: Entry): string {
  if (!after) return "none";
  const difference = worthOf(after) - worthOf(before);
  return difference > 0 ? "better" : difference < 0 ? "worse" : "same";
}

function showList(entries: readonly Entry[], filters: Filters): void {
  const shown = entries.filter(
    (entry) =>
      entry.some((item) => isMatch(item, filters)) &&
      (filters.change === "" || changeOf(entry) === filters.change),
  );
  const list = document.getElementById("list") as HTMLElement;
  const buttons = shown.map((entry) => {
    const button = renderEntry(entry);
    button.addEventListener("click", () => {
      for (const other of buttons) other.removeAttribute("aria-current");
      button.setAttribute("aria-current", "true");
      showDetail(entry);
    });
    return button;
  });
  list.replaceChildren(...buttons.map((button) => wrap("li", "", button)));
  list.scrollTop = 0;
  const count = document.getElementById("count") as HTMLElement;
  count.textContent = `${shown.length} of ${entries.length} entries shown`;
  const detail = document.getElementById("detail") as HTMLElement;
  if (buttons[0]) buttons[0].click();
  else detail.replaceChildren(make("p", "muted", "No trajectory matches these filters."));
}

function renderEntry(entry: Entry): HTMLButtonElement {
  const last = entry[1] ?? entry[0];
  const join = (values: readonly (string | number)[]): string => [...new Set(values)].join(" → ");
  const searches = join(entry.map((item) => item.searches));
  const facts = [
    join(entry.map(nameOf)),
    `${searches} ${searches === "1" ? "search" : "searches"}`,
    join(entry.map(({ stopReason }) => spaced(stopReason))),
  ];
  const worth = join(entry.map((item) => worthOf(item).toFixed(2).replace("-", "−")));
  const button = make("button", "item");
  button.type = "button";
  button.append(
    make("span", "item-question", last.question),
    make("span", worthOf(last) > 0 ? "worth good" : "worth bad", worth),
    make("span", "item-facts", facts.join(" · ")),
  );
  return button;
}

/** Where in the run it was sampled. */
function nameOf({ set, stage, step }: TrajectoryView): string {
  if (set === "before" || set === "after") return set;
  if (set === `${stage}-${step}`) return `${stage} step ${step}, held out`;
  return `${set} step ${step}`;
}

/** `turnLimit` as `turn limit`. */
function spaced(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function showDetail(entry: Entry): void {
  const { question, dataset, hops, goldAnswers } = entry[0];
  const facts = [dataset, ...(hops === undefined ? [] : [`${hops} ${hops === 1 ? "hop" : "hops"}`])];
  const gold = make("p", "facts", `${facts.join(", ")} · gold answer `);
  goldAnswers.forEach((answer, index) => {
    if (index > 0) gold.append(" or ");
    gold.append(make("mark", "gold-answer", answer));
  });
  const columns = make("div", entry.length > 1 ? "columns two" : "columns");
  columns.append(...entry.map(renderTrajectory));
  const detail = document.getElementById("detail") as HTMLElement;
  detail.replaceChildren(make("h3", "", question), gold, columns);
  (document.getElementById("tip") as HTMLElement).hidden = true;
}

function renderTrajectory(item: TrajectoryView): HTMLElement {
  const article = make("article", "trajectory");
  const title = make("h4", "", nameOf(item));
  const outcome = make("p", "facts");
  const isGood = worthOf(item) > 0;
  outcome.append(
    make(
      "strong",
      isGood ? "good" : "bad",
      item.answer === undefined
        ? `no answer: ${spaced(item.stopReason)}`
        : `${isGood ? "✓" : "✗"} ${item.answer}`,
    ),
  );
  const worth = [
    item.reward === undefined ? "" : `reward ${item.reward.toFixed(2)}`,
    item.advantage === undefined ? "" : `advantage ${signed(item.advantage)}`,
    ...Object.entries(item.scores ?? {}).map(([name, value]) => `${name} ${value.toFixed(2)}`),
    item.failure ?? "",
  ];
  outcome.append(` · ${worth.filter(Boolean).join(" · ")}`);
  article.append(title, outcome, ...item.segments.map((segment) => renderSegment(segment, item.advantage)));
  return article;
}

function renderSegment(segment: SegmentView, advantage: number | undefined): HTMLElement {
  const isSampled = segment.source === "policy";
  const roles = advantage === undefined ? ["sampled", "given"] : ["in the loss", "masked"];
  const tokens = segment.tokenCount > 0 ? ` · ${segment.tokenCount} tokens` : "";
  const label = make("div", "segment-label", `${segment.source} · ${roles[isSampled ? 0 : 1]}${tokens}`);
  const body = make("div", "segment-text");
  body.append(...segment.spans.map((span) => renderSpan(span, isSampled ? advantage : undefined)));
  body.querySelector<HTMLElement>(".token")?.setAttribute("tabindex", "0");
  const name = `segment ${segment.source}`;
  if (segment.source === "prompt") return wrap("details", name, wrap("summary", "", label), body);
  const passages = segment.passages ? [renderPassages(segment.passages)] : [];
  return wrap("section", name, label, ...passages, body);
}

function renderPassages(passages: NonNullable<SegmentView["passages"]>): HTMLElement {
  const items = passages.map(({ title, score, isGold }) => {
    const item = make("li", isGold ? "gold-passage" : "", isGold ? `★ ${title}` : title);
    item.append(make("span", "score", ` ${score.toFixed(1)}`));
    item.title = isGold ? "gold passage" : "passage";
    return item;
  });
  return wrap("ol", "passages", ...items);
}

function renderSpan(span: SpanView, advantage: number | undefined): HTMLElement | string {
  const gold = span.gold ?? 0;
  const classes = [gold & 1 ? "gold-answer" : "", gold & 2 ? "gold-passage" : ""];
  if (span.logprob === undefined) return gold === 0 ? span.text : make("mark", classes.join(" "), span.text);
  const element = make("span", `token ${classes.join(" ")}`, span.text === "" ? "⏎" : span.text);
  element.tabIndex = -1;
  element.style.setProperty("--surprise", String(Math.min(1, -span.logprob / 4)));
  const probability = Math.exp(span.logprob) * 100;
  const share = probability < 1 ? probability.toPrecision(1) : probability.toFixed(0);
  const trained = advantage === undefined ? "" : ` · advantage ${signed(advantage)}`;
  element.dataset.tip = `log-probability ${span.logprob.toFixed(3).replace("-", "−")} (${share} %)${trained}`;
  return element;
}

function signed(value: number): string {
  return `${value > 0 ? "+" : ""}${value.toFixed(2)}`.replace("-", "−");
}

function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  if (className.trim() !== "") element.className = className.trim();
  if (text !== "") element.textContent = text;
  return element;
}

function wrap(
  name: keyof HTMLElementTagNameMap,
  className: string,
  ...children: readonly HTMLElement[]
): HTMLElement {
  const element = make(name, className);
  element.append(...children);
  return element;
}

const functions = [
  startBrowser,
  pairUp,
  fillFilters,
  readFilters,
  isMatch,
  worthOf,
  changeOf,
  showList,
  renderEntry,
  nameOf,
  spaced,
  showDetail,
  renderTrajectory,
  renderSegment,
  renderPassages,
  renderSpan,
  signed,
  make,
  wrap,
];

/** The script as text. `__name` is what some compilers call inside functions to keep their names. */
export const clientScript = [
  '"use strict";',
  "const __name = (value) => value;",
  ...functions.map(String),
  "startBrowser();",
  tokenTipScript,
].join("\n");
