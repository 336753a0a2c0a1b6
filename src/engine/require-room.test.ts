import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { EngineError } from "../errors.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import { findKnownModel } from "./known-models.ts";
import type { ModelOptions } from "./model-options.ts";
import { requireRoom } from "./require-room.ts";

const smol = findKnownModel("smollm2-135m")?.model as ModelOptions;

test("a model that the machine cannot hold is refused with the numbers and what to change", () => {
  const refuse = (machineMemory: number, samplingWeights: "f32" | "int4" = "f32") => {
    return () => requireRoom("models/smollm2", smol, { machineMemory, samplingWeights });
  };
  expect(refuse(1.5e9)).not.toThrow();
  expect(refuse(1.2e9)).toThrow(
    /^models\/smollm2 needs at least 1\.3\d GB \(weights 0\.54 GB, .* with 0\.73 GB\), this machine has 1\.20 GB; sample it with fewer bits \(int4\), or use a smaller model$/,
  );
  expect(refuse(1.2e9, "int4")).not.toThrow();
  expect(refuse(0.5e9)).toThrow(/has 0\.50 GB; use a smaller model$/);
  expect(() => requireRoom("smollm2", smol, { machineMemory: 1.2e9 })).toThrow(
    /1\.20 GB; use a smaller model$/,
  );
});

test("a model that is opened is refused before its weights are read", async () => {
  const path = fileURLToPath(new URL("../../test/golden/gguf/llama.gguf", import.meta.url));
  const opening = EmbeddedEngine.open(path, { threads: 1, maxSlots: 1, machineMemory: 1e6 });
  await expect(opening).rejects.toThrow(EngineError);
  await expect(opening).rejects.toThrow(`${path} needs at least 0.1`);
});
