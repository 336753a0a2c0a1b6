/**
 * Names and order of a GGUF file's tensors against Hugging Face's. For the architecture llama the converter of llama.cpp
 * reorders the rows of queries and keys, because there the two numbers of a rotary pair are neighbours and not half
 * a head apart: row 2 i + j of a head is row i + j * headDim / 2 of ours.
 */
import { assert } from "../errors.ts";
import type { Parameter } from "./parameters.ts";

const whole: Readonly<Record<string, string>> = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};

const inLayer: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  attn_output: "self_attn.o_proj",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};

/** Hugging Face's name of a GGUF tensor; undefined where no supported family has such a tensor. */
export function huggingFaceName(name: string): string | undefined {
  const [, layer, part, kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
  const inner = part === undefined ? undefined : inLayer[part];
  return inner === undefined ? whole[name] : `model.layers.${Number(layer)}.${inner}.${kind}`;
}

const wholeBack = reversed(whole);
const inLayerBack = reversed(inLayer);

function reversed(names: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).map(([gguf, own]) => [own, gguf]));
}

/** The name of a parameter in a GGUF file. */
export function ggufName(name: string): string {
  const [, layer, part = "", kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name) ?? [];
  const found = layer === undefined ? wholeBack.get(name) : inLayerBack.get(part);
  assert(found, `no GGUF file has a tensor for ${name}`);
  return layer === undefined ? found : `blk.${layer}.${found}.${kind}`;
}

/** Whether the rows of this tensor (by Hugging Face's name) are in llama.cpp's order. */
export function isInterleaved(architecture: unknown, name: string): boolean {
  return architecture === "llama" && /\.self_attn\.[qk]_proj\.(weight|bias)$/.test(name);
}

/** Brings the rows of (heads * headDim, …) from llama.cpp's order into Hugging Face's, in place. */
export function separateHalves({ shape, data }: Parameter, heads: number): void {
  const size = (shape[0] as number) / heads;
  const rowLength = data.length / (shape[0] as number);
  const head = new Float32Array(size * rowLength);
  for (let start = 0; start < data.length; start += head.length) {
    head.set(data.subarray(start, start + head.length));
    for (let row = 0; row < size; row++) {
      const target = (row >> 1) + (row & 1) * (size / 2);
      data.set(head.subarray(row * rowLength, (row + 1) * rowLength), start + target * rowLength);
    }
  }
}

/** The rows of (heads * headDim, …) in llama.cpp's order: what `separateHalves` undoes. */
export function interleaveHalves({ shape, data }: Parameter, heads: number): Parameter {
  const size = (shape[0] as number) / heads;
  const rowLength = data.length / (shape[0] as number);
  const result = new Float32Array(data.length);
  for (let start = 0; start < data.length; start += size * rowLength) {
    for (let row = 0; row < size; row++) {
      const from = start + ((row >> 1) + (row & 1) * (size / 2)) * rowLength;
      result.set(data.subarray(from, from + rowLength), start + row * rowLength);
    }
  }
  return { shape, data: result };
}
