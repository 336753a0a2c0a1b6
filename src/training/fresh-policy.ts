/** The policy a step or an evaluation samples with. */
import type { Engine } from "../engine/engine.ts";
import type { Policy } from "../rollout/policy.ts";

/**
 * The engine's policy, with nothing kept of what was sampled before. Where the weights stayed the same, as while a critic
 * leads, cached keys and values would else make a run differ from a resumed one, which has none, in the last bit.
 */
export function freshPolicy(engine: Engine): Policy {
  const policy = engine.policy();
  policy.forget?.();
  return policy;
}
