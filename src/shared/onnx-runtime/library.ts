/**
 * ONNX Runtime's C interface, called in the library that `onnxruntime-node` ships. That package's own binding copies
 * every output into a fresh array, even one that it was told to write into the caller's, which costs a training step
 * the size of all weights several times over, and it blocks the event loop while a graph runs. Calls through `koffi`
 * do neither.
 */
import koffi from "koffi";
import { bindRuntime, type Pointer, type RuntimeFunctions } from "./functions.ts";

const elementTypes = { float32: 1, int32: 6, uint8: 2, int8: 3, int64: 7 } as const;
export type Values = Float32Array | BigInt64Array | Int32Array;

/** What is fed or received: an array with its shape. */
export interface Feed {
  readonly data: Values;
  readonly shape: readonly number[];
}

/** What is fixed when a session is made, or an output that the caller owns; unlike a `Feed` it may be bytes. */
export interface Weight {
  readonly data: Float32Array | Uint8Array | Int8Array;
  readonly shape: readonly number[];
}

export interface LibrarySessionOptions {
  readonly threads: number;
  /** Values of initialisers that the model names but does not hold. They must live, unchanged in place, as long as the session. */
  readonly initializers: ReadonlyMap<string, Weight>;
}

/** As long as the gap between two operators, and no longer. */
const spinMicroseconds = "100";

/** What is used of the library. All throw `Error` with ONNX Runtime's words. */
export class RuntimeLibrary {
  readonly #functions: RuntimeFunctions;
  readonly #environment: Pointer;
  readonly #memoryInfo: Pointer;
  readonly #names = new Map<string, { readonly address: Pointer; readonly bytes: Uint8Array }>();
  readonly #held = new Set<unknown>();

  private constructor(functions: RuntimeFunctions) {
    this.#functions = functions;
    const warnings = 3;
    this.#environment = this.#create((out) => functions.createEnvironment(warnings, "forager", out));
    const deviceAllocator = 0;
    const defaultMemory = 0;
    this.#memoryInfo = this.#create((out) =>
      functions.createCpuMemoryInfo(deviceAllocator, defaultMemory, out),
    );
  }

  static #loaded: RuntimeLibrary | undefined;

  /** The one library of this process. Throws `EngineError` when it cannot be loaded. */
  static get(): RuntimeLibrary {
    RuntimeLibrary.#loaded ??= new RuntimeLibrary(bindRuntime());
    return RuntimeLibrary.#loaded;
  }

  /** `model` is a model, or the path of a file with one, whose data files lie beside it. */
  createSession(model: Uint8Array | string, options: LibrarySessionOptions): Pointer {
    const functions = this.#functions;
    const settings = this.#create((out) => functions.createSessionOptions(out));
    const everyOptimization = 99;
    const values = [...options.initializers.values()].map((feed) => this.tensor(feed));
    try {
      this.#check(functions.setThreads(settings, options.threads));
      this.#check(functions.setOptimizationLevel(settings, everyOptimization));
      // A block planned for each shape that was ever fed lies beside what the first run took, and is hardly faster.
      this.#check(functions.disableMemoryPattern(settings));
      // Threads that spin until the next operator spare its wake-up (a third of a small model's step); those that spin for
      // longer double the time of a step as soon as anything else runs on the machine.
      this.#check(
        functions.addConfiguration(settings, "session.intra_op.spin_duration_us", spinMicroseconds),
      );
      if (values.length > 0) {
        const names = this.#addresses([...options.initializers.keys()]);
        const pointers = BigUint64Array.from(values);
        this.#check(functions.addInitializers(settings, names, pointers, values.length));
      }
      const environment = this.#environment;
      return this.#create((out) =>
        typeof model === "string"
          ? functions.createSessionFromFile(environment, model, settings, out)
          : functions.createSession(environment, model, model.byteLength, settings, out),
      );
    } finally {
      for (const value of values) functions.releaseValue(value);
      functions.releaseSessionOptions(settings);
    }
  }

  releaseSession(session: Pointer): void {
    this.#functions.releaseSession(session);
  }

  inputNames(session: Pointer): string[] {
    const count = this.#count((out) => this.#functions.getInputCount(session, out));
    return Array.from({ length: count }, (_, index) =>
      this.#ownedText((allocator, out) => this.#functions.getInputName(session, index, allocator, out)),
    );
  }

  /** Names and shapes of a session's outputs; a size that depends on the run is -1, what is no tensor has no sizes. */
  outputs(session: Pointer): { readonly name: string; readonly shape: readonly number[] }[] {
    const functions = this.#functions;
    const count = this.#count((out) => functions.getOutputCount(session, out));
    return Array.from({ length: count }, (_, index) => {
      const name = this.#ownedText((allocator, out) =>
        functions.getOutputName(session, index, allocator, out),
      );
      const type = this.#create((out) => functions.getOutputType(session, index, out));
      try {
        const info = this.#create((out) => functions.toTensorInfo(type, out));
        return { name, shape: info === 0n ? [] : this.#shape(info) };
      } finally {
        functions.releaseType(type);
      }
    });
  }

  /** A tensor over an array, which is neither copied nor kept alive by it. */
  tensor({ data, shape }: Feed | Weight): Pointer {
    if (data instanceof Uint8Array) return this.#tensor(data, shape, elementTypes.uint8);
    if (data instanceof Int8Array) return this.#tensor(data, shape, elementTypes.int8);
    const type =
      data instanceof Float32Array
        ? elementTypes.float32
        : data instanceof Int32Array
          ? elementTypes.int32
          : elementTypes.int64;
    return this.#tensor(data, shape, type);
  }

  release(values: Iterable<Pointer>): void {
    for (const value of values) if (value !== 0n) this.#functions.releaseValue(value);
  }

  /** Runs a session on another thread. Outputs of value 0 are allocated and returned; others are written into. */
  async run(
    session: Pointer,
    inputs: ReadonlyMap<string, Pointer>,
    outputs: ReadonlyMap<string, Pointer>,
  ): Promise<Pointer[]> {
    const inputNames = this.#addresses([...inputs.keys()]);
    const inputValues = BigUint64Array.from(inputs.values());
    const outputNames = this.#addresses([...outputs.keys()]);
    const outputValues = BigUint64Array.from(outputs.values());
    // What a run reads by address alone, the collector of garbage must not take.
    const held = [inputNames, inputValues, outputNames, outputValues];
    this.#held.add(held);
    const status = await new Promise<Pointer | null>((resolve, reject) => {
      this.#functions.run.async(
        session,
        null,
        inputNames,
        inputValues,
        inputValues.length,
        outputNames,
        outputValues.length,
        outputValues,
        (error: Error | null, result: Pointer | null) => (error ? reject(error) : resolve(result)),
      );
    }).finally(() => this.#held.delete(held));
    this.#check(status);
    return [...outputValues];
  }

  /** A copy of a tensor's values. */
  read(value: Pointer): Feed {
    const functions = this.#functions;
    const info = this.#create((out) => functions.getTypeAndShape(value, out));
    try {
      const type = new Int32Array(1);
      this.#check(functions.getElementType(info, type));
      const shape = this.#shape(info);
      return { data: this.#copy(value, shape, type[0] as number), shape };
    } finally {
      functions.releaseTypeAndShape(info);
    }
  }

  #shape(info: Pointer): number[] {
    const rank = this.#count((out) => this.#functions.getRank(info, out));
    const sizes = new BigInt64Array(rank);
    if (rank > 0) this.#check(this.#functions.getShape(info, sizes, rank));
    return Array.from(sizes, Number);
  }

  #count(call: (out: BigUint64Array) => Pointer | null): number {
    return Number(this.#create(call));
  }

  /** Reads a text that the library allocated, and frees it. */
  #ownedText(call: (allocator: Pointer, out: BigUint64Array) => Pointer | null): string {
    const allocator = this.#create((out) => this.#functions.getAllocator(out));
    const address = this.#create((out) => call(allocator, out));
    try {
      return koffi.decode(address, "char", -1) as string;
    } finally {
      this.#check(this.#functions.free(allocator, address));
    }
  }

  #copy(value: Pointer, shape: readonly number[], type: number): Values {
    const count = shape.reduce((product, size) => product * size, 1);
    if (type !== elementTypes.float32 && type !== elementTypes.int64)
      throw new Error(`an output has elements of type ${type}, which are not read`);
    const isFloat = type === elementTypes.float32;
    if (count === 0) return isFloat ? new Float32Array(0) : new BigInt64Array(0);
    const address = this.#address(value);
    const bytes = koffi.view(address, count * (isFloat ? 4 : 8)).slice(0);
    return isFloat ? new Float32Array(bytes) : new BigInt64Array(bytes);
  }

  #tensor(data: ArrayBufferView, shape: readonly number[], type: number): Pointer {
    const sizes = BigInt64Array.from(shape, BigInt);
    return this.#create((out) =>
      this.#functions.createTensor(this.#memoryInfo, data, data.byteLength, sizes, sizes.length, type, out),
    );
  }

  #address(value: Pointer): Pointer {
    return this.#create((out) => this.#functions.getData(value, out));
  }

  /** Addresses of names as C wants them. */
  #addresses(names: readonly string[]): BigUint64Array {
    return BigUint64Array.from(names, (name) => this.#name(name));
  }

  /** Names are few and kept for good. A tensor over the bytes tells where they lie. */
  #name(name: string): Pointer {
    const known = this.#names.get(name);
    if (known) return known.address;
    const bytes = new TextEncoder().encode(`${name}\0`);
    const value = this.#tensor(bytes, [bytes.length], elementTypes.uint8);
    const address = this.#address(value);
    this.#functions.releaseValue(value);
    this.#names.set(name, { address, bytes });
    return address;
  }

  /** Calls a function that writes what it made into its last argument. */
  #create(call: (out: BigUint64Array) => Pointer | null): Pointer {
    const out = new BigUint64Array(1);
    this.#check(call(out));
    return out[0] as Pointer;
  }

  #check(status: Pointer | null): void {
    if (!status) return;
    const message = this.#functions.errorMessage(status) as string;
    this.#functions.releaseStatus(status);
    throw new Error(message);
  }
}
