/**
 * Runs a Jinja template as Python does where `@huggingface/jinja` does otherwise without an error: what is put out is written
 * as by Python's `str` (`True`, `None`, `['a']`, `{'k': 1.0}`), `~` joins such texts, and `strip`, `lstrip` and `rstrip` take
 * away the characters that they are given, not all white space.
 *
 * Known to differ still: characters beyond the basic plane count as two; a sum of text and number is no error, nor is a
 * field of what is not defined.
 */
import { Environment, Interpreter } from "@huggingface/jinja";

/** A value of a template while it runs. */
interface Value {
  readonly type: string;
  readonly value: unknown;
}

/** A node of a parsed template, by its fields. */
interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A parsed template; the library's declarations do not reach its types. */
export interface Program {
  readonly body: readonly Node[];
}

interface Evaluator {
  run(program: Program): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
}

const LibraryInterpreter = Interpreter as unknown as new (environment: Environment) => Evaluator;

/** The text that a template gives; whatever the library throws. */
export function runTemplate(program: Program, environment: Environment): string {
  return String(new PythonInterpreter(program, environment).run(program).value);
}

class PythonInterpreter extends LibraryInterpreter {
  /** Expressions whose values are put out. */
  readonly #outputs: ReadonlySet<unknown>;

  constructor(program: Program, environment: Environment) {
    super(environment);
    this.#outputs = outputsOf(program);
  }

  override evaluate(node: Node | undefined, environment: Environment): Value {
    const value = this.#evaluate(node, environment);
    if (!this.#outputs.has(node) || value.type === "UndefinedValue") return value;
    return asText(pythonText(value));
  }

  #evaluate(node: Node | undefined, environment: Environment): Value {
    if (node?.type === "BinaryExpression" && (node.operator as { value?: unknown }).value === "~") {
      const side = (one: unknown): string => pythonText(this.evaluate(one as Node, environment));
      return asText(side(node.left) + side(node.right));
    }
    return this.#strip(node, environment) ?? super.evaluate(node, environment);
  }

  /** `text.strip(characters)` and its kin; nothing for any other node. */
  #strip(node: Node | undefined, environment: Environment): Value | undefined {
    const { callee, args } = (node ?? {}) as { readonly callee?: Node; readonly args?: readonly Node[] };
    if (node?.type !== "CallExpression" || callee?.type !== "MemberExpression" || args?.length !== 1)
      return undefined;
    const sides = strippedSides[String((callee.property as Node).value)];
    if (sides === undefined || callee.computed === true) return undefined;
    const text = this.evaluate(callee.object as Node, environment);
    const characters = this.evaluate(args[0], environment);
    if (text.type !== "StringValue" || characters.type !== "StringValue") return undefined;
    return asText(stripped(String(text.value), new Set(String(characters.value)), sides));
  }
}

const strippedSides: Readonly<Record<string, { readonly start: boolean; readonly end: boolean }>> = {
  strip: { start: true, end: true },
  lstrip: { start: true, end: false },
  rstrip: { start: false, end: true },
};

function stripped(
  text: string,
  characters: ReadonlySet<string>,
  sides: { readonly start: boolean; readonly end: boolean },
): string {
  const all = Array.from(text);
  const isKept = (character: string): boolean => !characters.has(character);
  const first = sides.start ? all.findIndex(isKept) : 0;
  const last = sides.end ? all.findLastIndex(isKept) : all.length - 1;
  return first === -1 ? "" : all.slice(first, last + 1).join("");
}

/** Statements of the language, which put out texts alone. */
const statements = /^(If|For|Break|Continue|Set|Macro|Comment|FilterStatement|CallStatement|StringLiteral)$/;

/** The expressions of a template that stand between its texts. */
function outputsOf(program: Program): ReadonlySet<unknown> {
  const outputs = new Set<unknown>();
  const visit = (body: unknown): void => {
    if (!Array.isArray(body)) return;
    for (const node of body as readonly Node[]) {
      if (!statements.test(node.type)) outputs.add(node);
      for (const inner of ["body", "alternate", "defaultBlock"]) visit(node[inner]);
    }
  };
  visit(program.body);
  return outputs;
}

/** The library makes its values itself, when a variable is set. */
function asText(text: string): Value {
  return new Environment().set("text", text) as Value;
}

/** A value as Python's `str` writes it; inside a list or a mapping as `repr` does. */
function pythonText(value: Value, isInside = false): string {
  const inner = (item: Value): string => pythonText(item, true);
  const items = (): string => (value.value as readonly Value[]).map(inner).join(", ");
  switch (value.type) {
    case "StringValue":
      return isInside ? quoted(String(value.value)) : String(value.value);
    case "BooleanValue":
      return value.value === true ? "True" : "False";
    case "NullValue":
      return "None";
    case "FloatValue":
      return pythonFloat(value.value as number);
    case "ArrayValue":
      return `[${items()}]`;
    case "TupleValue":
      return (value.value as readonly Value[]).length === 1 ? `(${items()},)` : `(${items()})`;
    case "ObjectValue": {
      const entries = [...(value.value as ReadonlyMap<string, Value>)];
      return `{${entries.map(([key, item]) => `${quoted(key)}: ${inner(item)}`).join(", ")}}`;
    }
    case "UndefinedValue":
      return "";
    default:
      return String(value);
  }
}

function pythonFloat(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e16)
    return Object.is(value, -0) ? "-0.0" : value.toFixed(1);
  const isSmall = value !== 0 && Math.abs(value) < 1e-4;
  const text = isSmall || Math.abs(value) >= 1e16 ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text
    .replace(/[\\\n\r\t]/g, (one) => escapes[one] as string)
    .replaceAll("'", (one) => (quote === "'" ? "\\'" : one));
  return quote + escaped + quote;
}
