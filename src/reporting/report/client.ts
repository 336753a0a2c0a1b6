/**
 * The script of the page: a browser of trajectories. It runs in the reader's browser, not here: the functions are
 * written into the document as text (`clientScript`), so they may use each other and the page, but nothing that is
 * imported. Text from outside enters the page as text nodes only.
 */
import type { SegmentView, SpanView, TrajectoryView } from "./trajectory-view.ts";

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
  fillFilters(form, data);
  const update = (): void => showList(data, readFilters(form));
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  listenForTokens();
  form.hidden = false;
  update();
}

/** Gives each choice the values that occur; a choice without a choice is hidden. */
function fillFilters(form: HTMLFormElement, data: readonly TrajectoryView[]): void {
  const values: Record<string, string[]> = {
    set: data.map(({ set }) => set),
    step: data.map((item) => `${item.stage} ${item.step}`),
    stop: data.map(({ stopReason }) => stopReason),
    hops: data.flatMap(({ hops }) => (hops === undefined ? [] : [String(hops)])).sort(),
  };
  for (const [name, all] of Object.entries(values)) {
    const select = form.elements.namedItem(name) as HTMLSelectElement;
    const distinct = [...new Set(all)];
    for (const value of distinct) select.append(new Option(value, value));
    (select.closest("label") as HTMLElement).hidden = distinct.length < 2;
  }
  const isCompared = data.some((item) => partnerOf(data, item));
  for (const element of Array.from(form.querySelectorAll<HTMLElement>("[data-needs-pairs]")))
    element.hidden = !isCompared;
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

function matches(data: readonly TrajectoryView[], item: TrajectoryView, filters: Filters): boolean {
  const { set, step, stop, hops, reward, change, words } = filters;
  return (
    (set === "" || item.set === set) &&
    (step === "" || `${item.stage} ${item.step}` === step) &&
    (stop === "" || item.stopReason === stop) &&
    (hops === "" || String(item.hops) === hops) &&
    (reward === "" || (worthOf(item) > 0 ? "some" : "none") === reward) &&
    (change === "" || changeOf(data, item) === change) &&
    (words === "" || `${item.question} ${item.answer ?? ""}`.toLowerCase().includes(words))
  );
}

/** What a trajectory was worth: its reward, or for an evaluation its exact match. */
function worthOf(item: TrajectoryView): number {
  return item.reward ?? item.scores?.em ?? 0;
}

/** The same question on the other side of the training. */
function partnerOf(data: readonly TrajectoryView[], item: TrajectoryView): TrajectoryView | undefined {
  const other = item.set === "before" ? "after" : item.set === "after" ? "before" : undefined;
  return data.find(({ key, set }) => set === other && key === item.key);
}

function changeOf(data: readonly TrajectoryView[], item: TrajectoryView): string {
  const partner = partnerOf(data, item);
  if (!partner) return "none";
  const [before, after] = item.set === "before" ? [item, partner] : [partner, item];
  const difference = Math.sign(worthOf(after) - worthOf(before));
  return difference > 0 ? "better" : difference < 0 ? "worse" : "same";
}

function showList(data: readonly TrajectoryView[], filters: Filters): void {
  const items = data.filter((item) => matches(data, item, filters));
  const list = document.getElementById("list") as HTMLElement;
  const buttons = items.map((item) => {
    const button = make("button", "item");
    button.type = "button";
    const place = `${item.set === item.stage ? item.stage : item.set} · step ${item.step}`;
    const worth = make("span", worthOf(item) > 0 ? "worth good" : "worth bad", worthOf(item).toFixed(2));
    const facts = `${place} · ${item.searches} ${item.searches === 1 ? "search" : "searches"} · ${item.stopReason}`;
    button.append(make("span", "item-question", item.question), worth, make("span", "item-facts", facts));
    button.addEventListener("click", () => {
      for (const other of buttons) other.removeAttribute("aria-current");
      button.setAttribute("aria-current", "true");
      showDetail(data, item);
    });
    return button;
  });
  list.replaceChildren(...buttons.map((button) => wrap("li", "", button)));
  const count = document.getElementById("count") as HTMLElement;
  count.textContent = `${items.length} of ${data.length} match`;
  if (buttons[0]) buttons[0].click();
  else
    (document.getElementById("detail") as HTMLElement).replaceChildren(
      make("p", "muted", "No trajectory matches."),
    );
}

function showDetail(data: readonly TrajectoryView[], item: TrajectoryView): void {
  const detail = document.getElementById("detail") as HTMLElement;
  const partner = partnerOf(data, item);
  const shown = partner === undefined ? [item] : item.set === "before" ? [item, partner] : [partner, item];
  const heading = make("h3", "", item.question);
  const facts = [
    item.dataset,
    item.hops === undefined ? "" : `${item.hops} ${item.hops === 1 ? "hop" : "hops"}`,
  ];
  const gold = make("p", "facts", `${facts.filter(Boolean).join(", ")} · gold answer `);
  item.goldAnswers.forEach((answer, index) => {
    if (index > 0) gold.append(" or ");
    gold.append(make("mark", "gold-answer", answer));
  });
  const columns = make("div", shown.length > 1 ? "columns two" : "columns");
  columns.append(...shown.map(renderTrajectory));
  detail.replaceChildren(heading, gold, columns);
  hideTip();
}

function renderTrajectory(item: TrajectoryView): HTMLElement {
  const article = make("article", "trajectory");
  const title = make("h4", "", `${item.set === item.stage ? item.stage : item.set}, step ${item.step}`);
  const outcome = make("p", "facts");
  const isGood = worthOf(item) > 0;
  outcome.append(
    make(
      "strong",
      isGood ? "good" : "bad",
      item.answer === undefined ? `no answer: ${item.stopReason}` : `${isGood ? "✓" : "✗"} ${item.answer}`,
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
  const isTrained = segment.source === "policy";
  const labels = { prompt: "prompt", policy: "policy", environment: "environment" };
  const mask = isTrained ? "in the loss" : "masked";
  const tokens = segment.tokenCount > 0 ? `, ${segment.tokenCount} tokens` : "";
  const label = make("div", "segment-label", `${labels[segment.source]} · ${mask}${tokens}`);
  const body = make("div", "segment-text");
  body.append(...segment.spans.map((span) => renderSpan(span, advantage)));
  body.querySelector<HTMLElement>(".token")?.setAttribute("tabindex", "0");
  const parts = [label, ...(segment.passages ? [renderPassages(segment.passages)] : []), body];
  const isLong = segment.source === "prompt";
  if (!isLong) return wrap("section", `segment ${segment.source}`, ...parts);
  const details = wrap("details", `segment ${segment.source}`, wrap("summary", "", label), body);
  return details;
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

/** One pair of listeners for all tokens: pointer, tap and keyboard focus show what is known; arrows move. */
function listenForTokens(): void {
  const detail = document.getElementById("detail") as HTMLElement;
  const tokenOf = (event: Event): HTMLElement | null =>
    (event.target as HTMLElement).closest<HTMLElement>(".token");
  const show = (event: Event): void => {
    const token = tokenOf(event);
    if (token) showTip(token);
    else hideTip();
  };
  for (const type of ["pointerover", "click", "focusin"]) detail.addEventListener(type, show);
  for (const type of ["pointerleave", "focusout"]) detail.addEventListener(type, hideTip);
  detail.addEventListener("keydown", (event) => {
    const token = tokenOf(event);
    if (event.key === "Escape") hideTip();
    if (!token || (event.key !== "ArrowRight" && event.key !== "ArrowLeft")) return;
    const tokens = Array.from((token.parentElement as HTMLElement).querySelectorAll<HTMLElement>(".token"));
    const next = tokens[tokens.indexOf(token) + (event.key === "ArrowRight" ? 1 : -1)];
    if (!next) return;
    event.preventDefault();
    token.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  addEventListener("scroll", hideTip, { passive: true });
}

function showTip(token: HTMLElement): void {
  const tip = document.getElementById("tip") as HTMLElement;
  tip.textContent = token.dataset.tip ?? "";
  tip.hidden = false;
  const box = token.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8));
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
}

function hideTip(): void {
  (document.getElementById("tip") as HTMLElement).hidden = true;
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
  fillFilters,
  readFilters,
  matches,
  worthOf,
  partnerOf,
  changeOf,
  showList,
  showDetail,
  renderTrajectory,
  renderSegment,
  renderPassages,
  renderSpan,
  listenForTokens,
  showTip,
  hideTip,
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
].join("\n");
