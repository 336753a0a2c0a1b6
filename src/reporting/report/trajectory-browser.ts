/** The part of the page that the script fills: filters, a list, and one trajectory or a pair of them. */
import { element, type Markup } from "./markup.ts";
import type { TrajectorySample } from "./trajectory-sample.ts";

export function trajectoryBrowser({ total, trajectories }: TrajectorySample): Markup {
  const shown = trajectories.length;
  const extent =
    shown === total
      ? `All ${total} stored trajectories.`
      : `${shown} of ${total} stored trajectories, an even sample.`;
  return element(
    "section",
    { class: "part", id: "trajectories" },
    element("h2", {}, "Trajectories"),
    element(
      "p",
      { class: "caption" },
      `${extent} A question that was answered before and after is shown side by side.`,
    ),
    element(
      "noscript",
      {},
      element("p", {}, "Reading trajectories needs JavaScript; nothing is loaded from the network."),
    ),
    renderFilters(),
    renderKey(),
    element("p", { id: "count", role: "status" }),
    element(
      "div",
      { class: "browser" },
      element("ul", { id: "list", "aria-label": "Trajectories" }),
      element("div", { id: "detail" }),
    ),
  );
}

function renderFilters(): Markup {
  const select = (name: string, title: string, options: readonly (readonly [string, string])[]): Markup =>
    element(
      "label",
      {},
      title,
      element(
        "select",
        { name },
        options.map(([value, label]) => element("option", { value }, label)),
      ),
    );
  const all = ["", "all"] as const;
  return element(
    "form",
    { id: "filters", hidden: true },
    element(
      "label",
      {},
      "Question or answer",
      element("input", { name: "words", type: "search", placeholder: "contains" }),
    ),
    select("set", "Set", [all]),
    select("step", "Step", [all]),
    select("reward", "Reward", [all, ["some", "above 0"], ["none", "0 or below"]]),
    select("change", "Before to after", [
      all,
      ["better", "became better"],
      ["worse", "became worse"],
      ["same", "stayed the same"],
    ]),
    select("hops", "Hops", [all]),
    select("stop", "Stop reason", [all]),
    element("button", { type: "reset" }, "Show all"),
  );
}

function renderKey(): Markup {
  const entry = (name: string, sample: string, meaning: string): Markup =>
    element("span", {}, element("span", { class: `swatch ${name}` }, sample), ` ${meaning}`);
  return element(
    "div",
    { class: "key" },
    entry(
      "token",
      "token",
      "sampled by the policy; the stronger, the less likely; point at it, or use Tab and arrow keys",
    ),
    entry("gold-answer", "answer", "gold answer"),
    element("span", {}, element("mark", { class: "swatch gold-passage" }, "passage"), " gold passage"),
  );
}
