/** Writes a `Graph` as an ONNX model: opset 18 plus the `com.microsoft` operators of ONNX Runtime. */
import onnxProto from "onnx-proto";
import type { Attribute, Constant, Graph, Node, Tensor } from "./graph.ts";

const { onnx } = onnxProto;

const tensorTypes = { float32: 1, int32: 6, uint8: 2, int8: 3, int64: 7 } as const;
/** TensorProto.DataLocation.EXTERNAL */
const externalLocation = 1;
const attributeTypes = { float: 1, integer: 2, string: 3, integers: 7 } as const;

/** The bytes of an ONNX model with the graph's inputs and the given outputs. */
export function encodeOnnx(graph: Graph, outputs: readonly Tensor[]): Uint8Array {
  const model = onnx.ModelProto.fromObject({
    irVersion: 9,
    producerName: "forager",
    opsetImport: [
      { domain: "", version: 18 },
      { domain: "com.microsoft", version: 1 },
    ],
    graph: {
      name: "graph",
      node: neededNodes(graph, outputs).map((node) => ({
        opType: node.operator,
        domain: node.domain,
        input: [...node.inputs],
        output: [...node.outputs],
        attribute: Object.entries(node.attributes).map(([name, value]) => encodeAttribute(name, value)),
      })),
      initializer: [...graph.constants.map(encodeConstant), ...graph.weights.map(encodeWeight)],
      input: graph.inputs.map(encodeValueInfo),
      output: outputs.map(encodeValueInfo),
    },
  });
  return onnx.ModelProto.encode(model).finish();
}

/** The nodes that some output depends on: ONNX Runtime would run the others too. */
function neededNodes(graph: Graph, outputs: readonly Tensor[]): Node[] {
  const needed = new Set(outputs.map(({ name }) => name));
  // Nodes stand in an order in which each comes after those it reads.
  const backwards = graph.nodes.toReversed().filter((node) => {
    const isNeeded = node.outputs.some((name) => needed.has(name));
    if (isNeeded) for (const name of node.inputs) needed.add(name);
    return isNeeded;
  });
  return backwards.reverse();
}

function encodeConstant({ name, type, shape, values }: Constant): object {
  const data = type === "int64" ? { int64Data: [...values] } : { floatData: [...values] };
  return { name, dataType: tensorTypes[type], dims: [...shape], ...data };
}

/** Only where the values are found: ONNX Runtime is handed the array itself under the weight's name. */
function encodeWeight({ name, type, shape }: Tensor): object {
  return {
    name,
    dataType: tensorTypes[type],
    dims: [...shape],
    dataLocation: externalLocation,
    externalData: [{ key: "location", value: name }],
  };
}

/** A whole number that means a float must come as `{ float }`, or ONNX Runtime sees an attribute of the wrong type. */
function encodeAttribute(name: string, value: Attribute): object {
  if (typeof value === "number") return { name, type: attributeTypes.integer, i: value };
  if (typeof value === "string") {
    return { name, type: attributeTypes.string, s: new TextEncoder().encode(value) };
  }
  if ("float" in value) return { name, type: attributeTypes.float, f: value.float };
  return { name, type: attributeTypes.integers, ints: [...value] };
}

function encodeValueInfo(tensor: Tensor): object {
  const dim = tensor.shape.map((size) =>
    typeof size === "number" ? { dimValue: size } : { dimParam: size },
  );
  return { name: tensor.name, type: { tensorType: { elemType: tensorTypes[tensor.type], shape: { dim } } } };
}
