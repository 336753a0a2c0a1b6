/** The shape of a model that a recipe names, from its headers alone: nothing is downloaded, no weight is read. */
import { join } from "node:path";
import type { TrainableModel } from "../config/model-source-options.ts";
import type { ModelOptions } from "../engine/model-options.ts";
import { CheckpointError } from "../errors.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { exists } from "../shared/files.ts";
import { hubSettings, type Watcher } from "./hub-settings.ts";

/** Throws `FileError`, `HubError`, `DataFormatError`, and `CheckpointError` for a run without a checkpoint. */
export async function modelShape(model: TrainableModel, watcher: Watcher): Promise<ModelOptions> {
  if (model.type === "fresh") {
    const { type: _, ...options } = model;
    return options;
  }
  const { findKnownModel } = await import("../engine/known-models.ts");
  const known = findKnownModel(model.source);
  if (known !== undefined) return known.model;
  const [{ locateModel }, { openModelFiles }] = await Promise.all([
    import("../engine/model-source.ts"),
    import("../engine/model-files.ts"),
  ]);
  const hub = { ...hubSettings(process.env, watcher), offline: true };
  const files = await openModelFiles(await locateModel(await checkpointOf(model.source), hub), hub);
  await files.close();
  return files.model;
}

/** The newest checkpoint where `source` is a run, else `source` itself. Throws `CheckpointError` for a run that has none. */
export async function checkpointOf(source: string): Promise<string> {
  if (!(await exists(join(source, "recipe.yaml")))) return source;
  const checkpoint = await (await RunFolder.open(source)).latestCheckpoint();
  if (checkpoint === undefined)
    throw new CheckpointError(`the run ${source} has no checkpoint yet; train it first`);
  return checkpoint.path;
}
