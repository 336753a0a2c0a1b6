/**
 * Binds the functions of ONNX Runtime's C interface that are used here, in the library that `onnxruntime-node` ships.
 * The table of functions only grows from version to version, so that a function's place in it is fixed
 * (onnxruntime_c_api.h, `OrtApi`).
 */
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import koffi from "koffi";
import { EngineError } from "../../errors.ts";
import { loadLibrary } from "../native-library.ts";

/** An address; 0 stands for nothing. */
export type Pointer = bigint;
type Native = { (...values: readonly unknown[]): unknown; async(...values: readonly unknown[]): void };

/** The version of the interface that is asked for; every later library has it. */
const apiVersion = 18;
const pathType = process.platform === "win32" ? "const char16_t *" : "const char *";

type Status = (...values: readonly unknown[]) => Pointer | null;
/** Each returns a status, null where all went well, or releases something. */
export interface RuntimeFunctions {
  readonly errorMessage: Native;
  readonly releaseStatus: Native;
  readonly createEnvironment: Status;
  readonly createSessionOptions: Status;
  readonly releaseSessionOptions: Native;
  readonly disableMemoryPattern: Status;
  readonly setThreads: Status;
  readonly setOptimizationLevel: Status;
  readonly addConfiguration: Status;
  readonly addInitializers: Status;
  readonly createSession: Status;
  readonly createSessionFromFile: Status;
  readonly getInputCount: Status;
  readonly getOutputCount: Status;
  readonly getInputName: Status;
  readonly getOutputName: Status;
  readonly getOutputType: Status;
  readonly toTensorInfo: Status;
  readonly releaseType: Native;
  readonly getAllocator: Status;
  readonly free: Status;
  readonly releaseSession: Native;
  readonly createCpuMemoryInfo: Status;
  readonly createTensor: Status;
  readonly getData: Status;
  readonly getTypeAndShape: Status;
  readonly getElementType: Status;
  readonly getRank: Status;
  readonly getShape: Status;
  readonly releaseTypeAndShape: Native;
  readonly releaseValue: Native;
  readonly run: Native;
}

/** Throws `EngineError` when the library is missing, too old, or cannot be loaded. */
export function bindRuntime(): RuntimeFunctions {
  const path = libraryPath();
  const table = functionTable(path);
  const bind = (place: number, result: string, parameters: string): Native => {
    const pointer = koffi.decode(table, place * koffi.sizeof("void *"), "void *");
    return koffi.decode(pointer, koffi.proto(`${result} OrtApi_${place}(${parameters})`)) as Native;
  };
  const status = (place: number, parameters: string): Status => bind(place, "void *", parameters) as Status;
  const release = (place: number): Native => bind(place, "void", "void *object");
  return {
    errorMessage: bind(2, "const char *", "void *status"),
    releaseStatus: release(93),
    createEnvironment: status(3, "int level, const char *id, void *out"),
    createSessionOptions: status(10, "void *out"),
    releaseSessionOptions: release(100),
    disableMemoryPattern: status(17, "void *options"),
    setThreads: status(24, "void *options, int threads"),
    setOptimizationLevel: status(23, "void *options, int level"),
    addConfiguration: status(130, "void *options, const char *key, const char *value"),
    addInitializers: status(210, "void *options, void *names, void *values, size_t count"),
    createSession: status(8, "void *environment, void *model, size_t bytes, void *options, void *out"),
    createSessionFromFile: status(7, `void *environment, ${pathType} path, void *options, void *out`),
    getInputCount: status(30, "void *session, void *out"),
    getOutputCount: status(31, "void *session, void *out"),
    getInputName: status(36, "void *session, size_t index, void *allocator, void *out"),
    getOutputName: status(37, "void *session, size_t index, void *allocator, void *out"),
    getOutputType: status(34, "void *session, size_t index, void *out"),
    toTensorInfo: status(55, "void *type, void *out"),
    releaseType: release(98),
    getAllocator: status(78, "void *out"),
    free: status(76, "void *allocator, void *memory"),
    releaseSession: release(95),
    createCpuMemoryInfo: status(69, "int allocator, int memory, void *out"),
    createTensor: status(
      49,
      "void *memory, void *data, size_t bytes, void *shape, size_t rank, int type, void *out",
    ),
    getData: status(51, "void *value, void *out"),
    getTypeAndShape: status(65, "void *value, void *out"),
    getElementType: status(60, "void *info, void *out"),
    getRank: status(61, "void *info, void *out"),
    getShape: status(62, "void *info, void *out, size_t rank"),
    releaseTypeAndShape: release(99),
    releaseValue: release(96),
    run: bind(
      9,
      "void *",
      "void *session, void *options, void *inputNames, void *inputs, size_t inputCount, void *outputNames, size_t outputCount, void *outputs",
    ),
  };
}

/** The table of the interface's functions, at its address. */
function functionTable(path: string): Pointer {
  let table: Pointer | null;
  try {
    const library = loadLibrary(path);
    const base = library.func("void *OrtGetApiBase()")();
    const getApi = koffi.decode(
      koffi.decode(base, "void *"),
      koffi.proto("void *OrtGetApi(uint32_t version)"),
    );
    table = getApi(apiVersion);
  } catch (cause) {
    throw new EngineError(`ONNX Runtime could not be loaded from ${path}: ${(cause as Error).message}`, {
      cause,
    });
  }
  if (!table)
    throw new EngineError(
      `the ONNX Runtime of ${path} is older than 1.${apiVersion}; install the version that package-lock.json names`,
    );
  return table;
}

/** The shared library inside the package `onnxruntime-node`, for this system and processor. */
function libraryPath(): string {
  const entry = createRequire(import.meta.url).resolve("onnxruntime-node");
  const binaries = join(dirname(entry), "..", "bin");
  const { platform, arch } = process;
  for (const interfaceVersion of list(binaries)) {
    const folder = join(binaries, interfaceVersion, platform, arch);
    const file = list(folder).find((name) =>
      /^(lib)?onnxruntime(\.[\d.]+)?\.(so|dylib|dll)(\.\d+)*$/.test(name),
    );
    if (file) return join(folder, file);
  }
  throw new EngineError(
    `onnxruntime-node has no library for ${platform} on ${arch}; it was looked for below ${binaries}`,
  );
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
