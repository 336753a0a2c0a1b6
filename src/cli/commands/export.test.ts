/** A tiny training, and what becomes of it: folders for other programs, cards, refusals, and nothing half written. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest, runWithSignal } from "../../../test/run-cli.ts";
import { tinyRecipe } from "../../../test/tiny-recipe.ts";

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-export-"));
  await writeFile(at("tiny.yaml"), tinyRecipe);
  const line = ["train", at("tiny.yaml"), "--out", at("run"), "--set", "checkpoint.keep=9"];
  const { code } = await runForTest(...line);
  expect(code).toBe(0);
});
afterAll(() => rm(folder, { recursive: true }));

const complete = async (model: string): Promise<unknown> => {
  const line = ["complete", "--model", model, "--prompt", "Question: x?", "--max-tokens", "8", "--json"];
  return (await runForTest(...line)).json;
};

describe("a run", () => {
  test("becomes a folder for transformers, with the tokens that end a text and a card", async () => {
    const exported = await runForTest("export", at("run"), "--to", "hf", "--out", at("hf"), "--json");
    expect(exported.json).toEqual({
      out: at("hf"),
      to: "hf",
      dtype: "F32",
      checkpoint: 4,
      files: [
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
      ],
      bytes: expect.any(Number),
    });
    expect(await complete(at("hf"))).toEqual(await complete(at("run/checkpoints/4")));
    expect(await complete(at("run"))).toEqual(await complete(at("hf")));
    const card = await readFile(at("hf/README.md"), "utf8");
    expect(card).toContain("library_name: transformers");
    expect(card).toMatch(/\| after \| yes \| all \| 6 \| \d+\.\d \(\d+\.\d to \d+\.\d\) \|/);
    expect(card).toMatch(/\| before \| no \| all \| 6 \|/);
    expect(card).toContain("Question: {question}");
    expect(card).toContain("40, SHA-256 ");
    expect(card).not.toContain(folder);
  });

  test("becomes a GGUF file that continues as the checkpoint does", async () => {
    const line = ["export", at("run"), "--to", "gguf", "--out", at("gguf"), "--checkpoint", "3", "--json"];
    const exported = await runForTest(...line);
    expect(exported.json).toMatchObject({ checkpoint: 3, files: ["README.md", "run-F32.gguf"] });
    expect(await complete(at("gguf"))).toEqual(await complete(at("run/checkpoints/3")));
  });

  test("is told apart by its checkpoints: best, a step, or their folder", async () => {
    const best = await runForTest(
      "export",
      at("run"),
      "--to",
      "hf",
      "--out",
      at("best"),
      "--checkpoint",
      "best",
      "--json",
    );
    const { checkpoint } = best.json as { checkpoint: number };
    expect([2, 3]).toContain(checkpoint);
    const line = ["export", at(`run/checkpoints/${checkpoint}`), "--to", "hf", "--out", at("same"), "--json"];
    expect((await runForTest(...line)).json).toMatchObject({ checkpoint });
    for (const name of await readdir(at("best")))
      expect(await readFile(at(`same/${name}`))).toEqual(await readFile(at(`best/${name}`)));
    const missing = await runForTest(
      "export",
      at("run"),
      "--to",
      "hf",
      "--out",
      at("x"),
      "--checkpoint",
      "77",
    );
    expect(missing.stderr).toContain("keeps no checkpoint of step 77; there are 0, 1, 2, 3, 4");
  });

  test("halves its size with --dtype", async () => {
    const bytes = async (dtype: string): Promise<number> => {
      const line = ["export", at("run"), "--to", "hf", "--out", at(dtype), "--dtype", dtype, "--json"];
      await runForTest(...line);
      return (await readFile(at(`${dtype}/model.safetensors`))).length;
    };
    const [f32, bf16, f16] = [await bytes("f32"), await bytes("bf16"), await bytes("f16")];
    expect(Math.abs(bf16 - f16)).toBeLessThan(100);
    expect(f32 / bf16).toBeGreaterThan(1.7);
    expect(JSON.parse(await readFile(at("bf16/config.json"), "utf8")).torch_dtype).toBe("bfloat16");
  });
});

describe("a run that trained adapters", () => {
  beforeAll(async () => {
    await runForTest("export", at("run"), "--to", "hf", "--out", at("base"));
    const recipe = tinyRecipe
      .replace(/model:\n( {2}.*\n)+/, `model: ${at("base")}\n`)
      .replace("tokenBudget: 1024", "tokenBudget: 1024, lora: { rank: 2, targets: [q_proj, up_proj] }");
    await writeFile(at("adapters.yaml"), recipe);
    const { code, stderr } = await runForTest("train", at("adapters.yaml"), "--out", at("adapters"));
    expect({ code, stderr }).toMatchObject({ code: 0 });
  });

  test("is handed on merged, as a folder and as a GGUF file, and continues as in the run", async () => {
    const expected = await complete(at("adapters/checkpoints/4"));
    for (const to of ["merged", "gguf"]) {
      const exported = await runForTest("export", at("adapters"), "--to", to, "--out", at(`adapters-${to}`));
      expect(exported.code).toBe(0);
      expect(await complete(at(`adapters-${to}`))).toEqual(expected);
    }
  });

  test("is handed on alone, beside its base", async () => {
    const line = ["export", at("adapters"), "--to", "peft", "--out", at("peft"), "--json"];
    const exported = await runForTest(...line);
    expect(exported.json).toMatchObject({ to: "peft", dtype: "F32", checkpoint: 4 });
    expect(exported.stderr).toContain("names the base by its folder on this machine");
    expect(await complete(at("peft"))).toEqual(await complete(at("adapters/checkpoints/4")));
    const card = await readFile(at("peft/README.md"), "utf8");
    expect(card).toContain("library_name: peft");
    expect(card).toContain("It started from base (SHA-256 of its files ");
    const refused = await runForTest("export", at("adapters"), "--to", "hf", "--out", at("x"));
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("use --to merged for the whole model, --to peft for the adapters alone");
  });
});

describe("what makes no sense is refused, and nothing is written", () => {
  test.each([
    [["--to", "peft"], "no adapters, there is nothing for --to peft; use --to hf or --to gguf"],
    [["--to", "merged"], "use --to hf or --to gguf"],
    [["--to", "onnx"], "one of hf, peft, gguf, merged was expected"],
    [["--to", "hf", "--dtype", "q8_0"], "with --to hf one of f32, f16, bf16 was expected"],
    [["--to", "gguf", "--dtype", "bf16"], "one of f32, f16, q8_0, q4_0, q4_1 was expected"],
    [["--to", "hf", "--checkpoint", "first"], "best, last or the number of a step was expected"],
  ])("%j", async (words, message) => {
    const refused = await runForTest("export", at("run"), "--out", at("refused"), ...words);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(message);
    expect(await readdir(folder)).not.toContain("refused");
  });

  test("a folder that is there, --checkpoint without a run, a model that is not there", async () => {
    await mkdir(at("there"), { recursive: true });
    const there = await runForTest("export", at("run"), "--to", "hf", "--out", at("there"));
    expect(there.stderr).toContain("exists already; choose another folder with --out");
    expect(await readdir(at("there"))).toEqual([]);
    await cp(at("run/checkpoints/4"), at("alone"), { recursive: true });
    const alone = ["export", at("alone"), "--to", "hf", "--out", at("x")];
    expect((await runForTest(...alone, "--checkpoint", "last")).stderr).toContain(
      "--checkpoint is for a run folder",
    );
    const absent = await runForTest("export", at("absent"), "--to", "hf", "--out", at("x"));
    expect(absent.stderr).toContain("there is no model at");
    expect(await readdir(folder)).not.toContain("x");
  });
});

describe("what breaks off", () => {
  const partials = async (): Promise<string[]> =>
    (await readdir(folder)).filter((name) => name.endsWith(".partial"));

  test("by an interrupt leaves nothing", async () => {
    const line = ["export", at("run"), "--to", "hf", "--out", at("stopped")];
    const stopped = await runWithSignal(AbortSignal.abort(), ...line);
    expect(stopped.code).toBe(130);
    expect(await readdir(folder)).not.toContain("stopped");
    expect(await partials()).toEqual([]);
  });

  test("by a kill is cleared by the next export of that folder, and by no other", async () => {
    // No process has this number: it is above every limit of Linux.
    const abandoned = [".again.4999999.partial", ".other.4999999.partial", `.again.${process.ppid}.partial`];
    for (const name of abandoned) await mkdir(at(name));
    const { code } = await runForTest("export", at("run"), "--to", "hf", "--out", at("again"));
    expect(code).toBe(0);
    expect(await partials()).toEqual(abandoned.slice(1).sort());
    for (const name of abandoned) await rm(at(name), { recursive: true, force: true });
  });

  test("for want of room leaves nothing, and says so", async () => {
    // A limit on the size of files refuses a write as a full disk does.
    const main = join(import.meta.dirname, "../main.ts");
    const command = `ulimit -f 20; exec "$0" --import tsx "$1" export "$2" --to hf --out "$3"`;
    const words = ["-c", command, process.execPath, main, at("run"), at("full")];
    const stderr = await new Promise<string>((resolve) =>
      execFile("bash", words, { cwd: join(import.meta.dirname, "../../..") }, (_, __, text) => resolve(text)),
    );
    expect(stderr).toContain("cannot write");
    expect(await readdir(folder)).not.toContain("full");
    expect(await partials()).toEqual([]);
  });
});
