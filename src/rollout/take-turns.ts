/**
 * Two policies of one process, one at a time: completions of one wait until the other has none under way, and then start
 * together, in the order in which they came. Two engines that ran at once would race, and which completions share a batch,
 * on which their last bits depend, would differ from run to run. They would not be faster: each takes all processors.
 */
import type { Policy } from "./policy.ts";

/** `first` and `second` behind one gate. */
export function takeTurns(first: Policy, second: Policy): readonly [Policy, Policy] {
  const gate = new Gate();
  return [guarded(first, gate), guarded(second, gate)];
}

function guarded(policy: Policy, gate: Gate): Policy {
  return {
    identity: policy.identity,
    complete: async (contexts, options, signal) => {
      await gate.enter(policy);
      try {
        return await policy.complete(contexts, options, signal);
      } finally {
        gate.leave();
      }
    },
    ...(policy.forget && { forget: () => policy.forget?.() }),
  };
}

/** Lets the completions of one policy in and keeps those of the other waiting. */
class Gate {
  #active: Policy | undefined;
  #underWay = 0;
  #waiting: { readonly policy: Policy; readonly start: () => void }[] = [];

  async enter(policy: Policy): Promise<void> {
    this.#active ??= policy;
    if (this.#active === policy) {
      this.#underWay++;
      return;
    }
    await new Promise<void>((start) => this.#waiting.push({ policy, start }));
  }

  leave(): void {
    this.#underWay--;
    // Later, so that whoever goes on with the same policy at once still belongs to its turn.
    if (this.#underWay === 0) setImmediate(() => this.#change());
  }

  #change(): void {
    if (this.#underWay > 0) return;
    const next = this.#waiting;
    this.#waiting = [];
    this.#active = next[0]?.policy;
    this.#underWay = next.length;
    for (const { start } of next) start();
  }
}
