/**
 * Fields of a `config.json` that we do not read. Those known to change the mathematics must have the value that
 * switches them off; an unknown one whose name speaks of attention, positions, norms, scales, experts or
 * quantisation must be absent, null, false or empty. The rest (names, versions, ids, sampling) is harmless.
 */
import { CheckpointError } from "../errors.ts";

/** Neutral values of known fields; `undefined` among them is not needed, absent is always neutral. */
const neutralValues: Readonly<Record<string, readonly unknown[]>> = {
  attention_dropout: [0],
  hidden_dropout: [0],
  hidden_dropout_prob: [0],
  resid_pdrop: [0],
  embd_pdrop: [0],
  chunk_size_feed_forward: [0],
  is_causal: [true],
  partial_rotary_factor: [1],
  rope_interleaved: [false],
  attention_multiplier: [],
  embedding_multiplier: [1],
  residual_multiplier: [1],
  logits_scaling: [1],
  logit_scale: [1],
  num_experts: [0],
  num_local_experts: [0],
  n_routed_experts: [0],
};

/** Sound like mathematics and are none of the model's: implementations, ids, initialisation, and what only `use_sliding_window` switches on. */
const harmless: ReadonlySet<string> = new Set([
  "_attn_implementation",
  "_attn_implementation_autoset",
  "attn_implementation",
  "initializer_range",
  "max_window_layers",
  "output_attentions",
  "use_flash_attn",
  "layer_norm_eps",
]);

const speaksOfMathematics =
  /attention|attn|causal|rope|rotary|position|norm|bias|scal|multiplier|softcap|clip|logit|window|expert|moe|alibi|quant|dropout|pdrop|residual|sparse|chunk/;

/** Throws `CheckpointError` that names the file and the first field that would change what the model computes. */
export function requireNeutralFields(
  path: string,
  config: Readonly<Record<string, unknown>>,
  read: readonly string[],
): void {
  for (const [field, value] of Object.entries(config)) {
    if (read.includes(field) || harmless.has(field)) continue;
    const known = neutralValues[field];
    if (known === undefined && !speaksOfMathematics.test(field)) continue;
    const isOff = isEmpty(value) && !(value === false && known?.includes(true));
    if (isOff || known?.includes(value)) continue;
    throw new CheckpointError(
      `${path}: ${field} ${JSON.stringify(value)} is not supported: it changes what the model computes; use a model without it`,
    );
  }
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
