/** A page of the report's look without scripts: it loads nothing and may run nothing. */
import { createHash } from "node:crypto";
import { type Child, element, trusted } from "./markup.ts";
import { styleSheet } from "./style.ts";

/** The whole document; `eyebrow` stands small above the title. */
export function staticPage(
  { title, eyebrow }: { readonly title: string; readonly eyebrow: string },
  ...sections: readonly Child[]
): string {
  const policy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(styleSheet).digest("base64")}'; img-src data:; base-uri 'none'; form-action 'none'`;
  const head = element(
    "head",
    {},
    element("meta", { charset: "utf-8" }),
    element("meta", { "http-equiv": "Content-Security-Policy", content: policy }),
    element("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
    element("meta", { name: "color-scheme", content: "light dark" }),
    element("title", {}, `${title} – Forager`),
    element("link", { rel: "icon", href: "data:," }),
    element("style", {}, trusted(styleSheet)),
  );
  const body = element(
    "body",
    {},
    element("header", {}, element("p", { class: "eyebrow" }, eyebrow), element("h1", {}, title)),
    element("main", {}, ...sections),
    element("footer", {}, element("p", {}, "Made by Forager. This page loads nothing from the network.")),
  );
  return `<!doctype html>\n${element("html", { lang: "en" }, head, body).markup}\n`;
}

/** A part of the page under a heading. */
export function section(title: string, ...children: readonly Child[]): Child {
  return element("section", { class: "part" }, element("h2", {}, title), ...children);
}

/** A small sentence below a heading. */
export function caption(text: string): Child {
  return element("p", { class: "caption" }, text);
}

/** A table that scrolls within the page; the first cell of a row is its name, the others are numbers. */
export function numberTable(head: readonly string[], rows: readonly (readonly Child[])[]): Child {
  const cell = (index: number): Record<string, string> =>
    index === 0 ? { scope: "row" } : { class: "number" };
  return element(
    "div",
    { class: "scroll", tabindex: 0 },
    element(
      "table",
      { class: "plain" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          head.map((name, index) =>
            element("th", { scope: "col", class: index === 0 ? undefined : "number" }, name),
          ),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((row) =>
          element(
            "tr",
            {},
            row.map((child, index) => element(index === 0 ? "th" : "td", cell(index), child)),
          ),
        ),
      ),
    ),
  );
}
