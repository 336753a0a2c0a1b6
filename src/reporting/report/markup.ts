/**
 * HTML and SVG as values. Text becomes markup only through `element`, which escapes it, so that nothing a model or
 * a document wrote can be executed; there is no way to put a string in unescaped except `trusted`, which is for
 * constants of this folder.
 */

/** Text that is safe to put into the document. */
export interface Markup {
  readonly markup: string;
}

export type Child = Markup | string | number | undefined | false | readonly Child[];
/** True gives a bare attribute; undefined and false leave it out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

const voidElements = new Set(["meta", "link", "input", "br"]);

export function element(name: string, attributes: Attributes = {}, ...children: readonly Child[]): Markup {
  const rendered = Object.entries(attributes).map(([key, value]) => renderAttribute(key, value));
  const open = `<${name}${rendered.join("")}>`;
  return { markup: voidElements.has(name) ? open : `${open}${renderChildren(children)}</${name}>` };
}

/** Children without an element around them. */
export function fragment(...children: readonly Child[]): Markup {
  return { markup: renderChildren(children) };
}

/** A constant of this folder: style or script. Never text from outside. */
export function trusted(markup: string): Markup {
  return { markup };
}

/** JSON that can stand inside `<script type="application/json">`: no character that HTML gives a meaning. */
export function embeddedJson(value: unknown): Markup {
  const escapes = /[<>&\u2028\u2029]/g;
  return {
    markup: JSON.stringify(value).replace(
      escapes,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
  };
}

function renderChildren(children: readonly Child[]): string {
  return children.map(renderChild).join("");
}

function renderChild(child: Child): string {
  if (child === undefined || child === false) return "";
  if (typeof child === "string") return escapeText(child);
  if (typeof child === "number") return String(child);
  if (isMarkup(child)) return child.markup;
  return renderChildren(child);
}

function isMarkup(child: Markup | readonly Child[]): child is Markup {
  return "markup" in child;
}

function renderAttribute(name: string, value: Attributes[string]): string {
  if (value === undefined || value === false) return "";
  return value === true ? ` ${name}` : ` ${name}="${escapeText(String(value))}"`;
}

function escapeText(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replace(/[<>&"']/g, (character) => entities[character] as string);
}
