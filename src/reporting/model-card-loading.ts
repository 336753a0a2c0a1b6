/** The part of a model card that says how the model is loaded: by the library it was written for, and by Forager. */
import { codeBlock } from "./markdown.ts";
import type { ExportTarget, ModelCard } from "./model-card-parts.ts";

type Loaded = Pick<ModelCard, "target" | "file" | "base" | "run">;

/** `PATH` in the text is the folder that holds the card. */
export function loadingText(card: Loaded): string {
  const library = snippets[card.target](card);
  const forager = [
    'forager complete --model PATH --prompt "Question: ..."',
    ...(card.run ? ["forager eval PATH --recipe RECIPE     # the recipe above, with your paths"] : []),
  ].join("\n");
  return `## How to load it\n\n\`PATH\` is the folder with this file.\n\n${library}\n\nForager:\n\n${codeBlock(forager, "sh")}`;
}

const snippets: Readonly<Record<ExportTarget, (card: Loaded) => string>> = {
  hf: transformers,
  merged: transformers,
  peft,
  gguf: llamaCpp,
};

function transformers(): string {
  const code = `from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("PATH")
model = AutoModelForCausalLM.from_pretrained("PATH")
inputs = tokenizer("Question: ...", return_tensors="pt")
print(tokenizer.decode(model.generate(**inputs, max_new_tokens=64)[0]))`;
  return `transformers (vLLM takes the same folder: \`vllm serve PATH\`):\n\n${codeBlock(code, "python")}`;
}

function peft({ base }: Loaded): string {
  const name = base?.isOnHub ? base.name : "BASE";
  const code = `from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("PATH")
base = AutoModelForCausalLM.from_pretrained(${JSON.stringify(name)})
model = PeftModel.from_pretrained(base, "PATH")`;
  const where = base?.isOnHub ? "" : " (`BASE` is the folder of the model that the adapters belong to)";
  return `peft${where}:\n\n${codeBlock(code, "python")}`;
}

function llamaCpp({ file }: Loaded): string {
  const shell = `llama-completion -m PATH/${file} --special -p "Question: ..."`;
  const code = `from llama_cpp import Llama

model = Llama("PATH/${file}")
print(model("Question: ...", max_tokens=64)["choices"][0]["text"])`;
  return `llama.cpp:\n\n${codeBlock(shell, "sh")}\n\nllama-cpp-python:\n\n${codeBlock(code, "python")}`;
}
