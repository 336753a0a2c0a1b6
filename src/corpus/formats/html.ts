/**
 * HTML to readable text: a line for each block, blanks folded as a browser does, entities resolved. Scripts, styles,
 * navigation, forms and hidden elements are left out; navigation stays in a page that would be empty without it, since a
 * `nav` that is never closed holds all that follows. No layout is computed and no boilerplate is guessed.
 */
import { type DocumentText, tidyText } from "./document.ts";

const skipped = new Set(
  [
    "script",
    "style",
    "nav",
    "noscript",
    "template",
    "svg",
    "math",
    "iframe",
    "object",
    "canvas",
    "audio",
  ].concat(["video", "button", "select", "textarea", "dialog"]),
);
const skippedButNavigation = new Set([...skipped].filter((name) => name !== "nav"));
const blocks = new Set(
  [
    ..."h1 h2 h3 h4 h5 h6 p div section article main header footer aside ul ol dl table blockquote pre".split(
      " ",
    ),
  ].concat("figure figcaption form fieldset address details summary hr body".split(" ")),
);
const lines = new Set(["br", "li", "dt", "dd", "tr", "caption", "option"]);
/** Elements without an end, which open nothing. */
const empty = new Set([
  "br",
  "hr",
  "img",
  "input",
  "meta",
  "link",
  "source",
  "col",
  "wbr",
  "area",
  "base",
  "embed",
]);

/** Title and text of a page; the title is that of the head, else the first heading. */
export async function readHtml(html: string): Promise<DocumentText> {
  const { Parser } = await import("htmlparser2");
  const read = (left: ReadonlySet<string>): DocumentText => {
    const page = new PageText(left);
    parse(html, page, Parser);
    return { title: page.title, text: tidyText(page.text) };
  };
  const page = read(skipped);
  return page.text === "" ? read(skippedButNavigation) : page;
}

function parse(html: string, page: PageText, Parser: typeof import("htmlparser2").Parser): void {
  const parser = new Parser(
    {
      onopentag: (name, attributes) => page.open(name, attributes),
      onclosetag: (name) => page.close(name),
      ontext: (text) => page.add(text),
    },
    { decodeEntities: true },
  );
  parser.end(html);
}

/** Collects the text of a page from its tags in order. Looking into a text that grows would copy it each time. */
class PageText {
  readonly #parts: string[] = [];
  readonly #skipped: ReadonlySet<string>;
  /** Last character of the text so far, empty before the first. */
  #last = "";
  #headTitle = "";
  #heading = "";
  /** Elements that are open inside one that is left out, that one included. */
  #skipDepth = 0;
  #preDepth = 0;
  #inside: "title" | "heading" | undefined;

  /** `skipped` are the elements that are left out, with all they hold. */
  constructor(skipped: ReadonlySet<string>) {
    this.#skipped = skipped;
  }

  get text(): string {
    return this.#parts.join("");
  }

  get title(): string {
    return fold(this.#headTitle).trim() || fold(this.#heading).trim();
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (empty.has(name)) {
      if (this.#skipDepth === 0) this.#break(name);
      return;
    }
    if (this.#skipDepth > 0 || this.#skipped.has(name) || isHidden(attributes)) {
      this.#skipDepth++;
      return;
    }
    if (name === "title") this.#inside = "title";
    else if (name === "h1" && this.#heading === "") this.#inside = "heading";
    if (name === "pre") this.#preDepth++;
    this.#break(name);
  }

  close(name: string): void {
    if (empty.has(name)) return;
    if (this.#skipDepth > 0) {
      this.#skipDepth--;
      return;
    }
    if (name === "title" || name === "h1") this.#inside = undefined;
    if (name === "pre") this.#preDepth--;
    if (name === "td" || name === "th") this.#space();
    this.#break(name);
  }

  add(text: string): void {
    if (this.#skipDepth > 0) return;
    if (this.#inside === "title") {
      this.#headTitle += text;
      return;
    }
    if (this.#inside === "heading") this.#heading += text;
    if (this.#preDepth > 0) this.#append(text);
    else {
      const folded = fold(text);
      this.#append(/^\s?$/.test(this.#last) ? folded.trimStart() : folded);
    }
  }

  #append(text: string): void {
    if (text === "") return;
    this.#parts.push(text);
    this.#last = text.charAt(text.length - 1);
  }

  #break(name: string): void {
    if (blocks.has(name)) this.#append("\n\n");
    else if (lines.has(name) && this.#last !== "\n") this.#append("\n");
  }

  #space(): void {
    if (!/\s/.test(this.#last)) this.#append(" ");
  }
}

function isHidden({
  hidden,
  "aria-hidden": ariaHidden,
  style = "",
}: Readonly<Record<string, string>>): boolean {
  return hidden !== undefined || ariaHidden === "true" || /display\s*:\s*none/i.test(style);
}

/** Runs of blanks as one space; the space that does not break stays. */
function fold(text: string): string {
  return text.replace(/[ \t\r\n\f]+/g, " ");
}

/** The encoding that a page declares in its first kilobyte. */
export function encodingOfHtml(head: Uint8Array): string | undefined {
  const text = Buffer.from(head.subarray(0, 1024)).toString("latin1");
  return /<meta[^>]+charset\s*=\s*["']?\s*([\w-]+)/i.exec(text)?.[1];
}
