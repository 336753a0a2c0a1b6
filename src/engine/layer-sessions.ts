/**
 * Sessions by the form of their graph. Each holds memory of its own for what it computes in between, so that only those met
 * last are kept; another takes some hundredths of a second to make.
 */
import { canonicalJson } from "../shared/hash.ts";
import type { Session } from "./session.ts";

/** Forms of one batch that come by turns: sequences are trained in the order of their lengths, so that most forms come once. */
const mostKept = 2;

export class LayerSessions<Form, Layer extends { readonly session: Session }> {
  readonly #create: (form: Form) => Promise<Layer>;
  /** The one met last is the last. */
  readonly #layers = new Map<string, Layer>();

  constructor(create: (form: Form) => Promise<Layer>) {
    this.#create = create;
  }

  /** The graph of a form, made where there is none; none of the others may be running. Throws `EngineError`. */
  async get(form: Form): Promise<Layer> {
    const key = canonicalJson(form);
    const layer = this.#layers.get(key) ?? (await this.#create(form));
    this.#layers.delete(key);
    this.#layers.set(key, layer);
    for (const [oldest, { session }] of this.#layers) {
      if (this.#layers.size <= mostKept) break;
      this.#layers.delete(oldest);
      await session.close();
    }
    return layer;
  }

  async close(): Promise<void> {
    const layers = [...this.#layers.values()];
    this.#layers.clear();
    for (const { session } of layers) await session.close();
  }
}
