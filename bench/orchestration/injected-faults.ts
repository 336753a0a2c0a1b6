/** Fails calls on request in every way that a server or a network does. */
import { setTimeout as sleep } from "node:timers/promises";
import { random } from "../../src/shared/random.ts";

/** Ways in which a call fails; the last four leave the caller without knowing whether it was carried out. */
export const faultKinds = [
  "status 408",
  "status 409",
  "status 410",
  "status 422",
  "status 425",
  "status 429",
  "status 500",
  "status 502",
  "status 503",
  "slow",
  "cut before",
  "truncated",
  "no number",
  "cut after",
] as const;

/**
 * What ends a run by design is injected only where it does not: a refusal or NaN is one sample's affair, but a gradient's or a
 * step's ends the run; a result can be gone, but not the weights that are sampled from.
 */
const only: Readonly<Partial<Record<FaultKind, string>>> = {
  "status 409": "asample",
  "status 410": "retrieve_future",
  "status 422": "asample",
  "no number": "asample",
};
type FaultKind = (typeof faultKinds)[number];

type Handler = (request: Request) => Response | Promise<Response>;

/** Fails every `every`-th call that may fail, in turn with each kind, until `left` faults were injected. */
export class Faults {
  #left = 0;
  #every = 1;
  #calls = 0;
  /** Questions for results that were answered with 410. */
  readonly #lost = new Set<string>();
  /** Kinds to come. */
  readonly #due: FaultKind[] = [...faultKinds];
  readonly #draw = random(11, "faults");
  /** How often each kind was injected. */
  readonly injected = Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>;

  start(count: number, every: number): void {
    this.#left = count;
    this.#every = every;
  }

  get left(): number {
    return this.#left;
  }

  wrap(handle: Handler): Handler {
    return async (request) => {
      const path = new URL(request.url).pathname.replace("/api/v1/", "");
      const mayFail = /^(asample|retrieve_future|forward_backward|optim_step|save_weights_for_sampler)$/.test(
        path,
      );
      if (this.#left === 0 || !mayFail || !this.#isNext(path)) return await handle(request);
      this.#left--;
      const kind = await this.#kindFor(path, request);
      this.injected[kind]++;
      return await this.#fail(kind, request, handle);
    };
  }

  /** Polls are few beside samples: the next one gets what only a poll can get. */
  #isNext(path: string): boolean {
    const isRare = path === "retrieve_future" && this.#due.includes("status 410");
    return ++this.#calls % this.#every === 0 || isRare;
  }

  /** The next kind that this call may get: one that no other call can get first. */
  async #kindFor(path: string, request: Request): Promise<FaultKind> {
    const own = this.#due.findIndex((kind) => only[kind] === path);
    const place = own >= 0 ? own : this.#due.findIndex((kind) => only[kind] === undefined);
    const [kind] = this.#due.splice(place, 1) as [FaultKind];
    if (this.#due.every((left) => only[left] !== undefined))
      this.#due.push(...faultKinds.filter((one) => !this.#due.includes(one)));
    if (kind !== "status 410") return kind;
    // Lost once: the result is asked for anew, and a second loss would end the run, as it should.
    const asked = await request.clone().text();
    if (this.#lost.has(asked)) return "status 503";
    this.#lost.add(asked);
    return kind;
  }

  async #fail(kind: FaultKind, request: Request, handle: Handler): Promise<Response> {
    if (kind.startsWith("status")) {
      await request.arrayBuffer();
      return Response.json({ detail: "injected" }, { status: Number(kind.slice(-3)) });
    }
    if (kind === "cut before") return broken("");
    const answer = await handle(request);
    const text = await answer.text();
    if (kind === "slow") {
      await sleep(500 + this.#draw.below(1500));
      return new Response(text, { status: answer.status, headers: { "content-type": "application/json" } });
    }
    if (kind === "no number")
      return new Response('{"logprobs": [NaN', { headers: { "content-type": "application/json" } });
    return kind === "cut after" ? broken("") : broken(text.slice(0, Math.ceil(text.length / 2)));
  }
}

/** A reply whose connection breaks after `text`. */
function broken(text: string): Response {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (text !== "") controller.enqueue(Buffer.from(text));
      setTimeout(() => controller.error(new Error("injected")), 1);
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}
