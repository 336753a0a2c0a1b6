/** Reverse-mode differentiation of a `Graph`: plays the tape backwards and adds the nodes of the gradients. */
import { assert } from "../errors.ts";
import type { Graph, Tensor } from "./graph.ts";
import { add } from "./operators.ts";

/**
 * Gradients of the parameters, in order, given the gradient of one output of the graph. A parameter without
 * influence has no gradient: that is a bug of the graph and asserted.
 */
export function differentiate(
  graph: Graph,
  seed: { readonly output: Tensor; readonly gradient: Tensor },
  parameters: readonly Tensor[],
): Tensor[] {
  const gradients = new Map<string, Tensor>([[seed.output.name, seed.gradient]]);
  // Backward rules add nodes of their own; those are not differentiated again.
  const tape = graph.tape.splice(0);
  for (const { output, inputs, backward } of tape.toReversed()) {
    const gradient = gradients.get(output.name);
    if (!gradient) continue;
    const inputGradients = backward(gradient);
    for (const [index, input] of inputs.entries()) {
      const inputGradient = inputGradients[index];
      if (!input.requiresGradient || !inputGradient) continue;
      const known = gradients.get(input.name);
      gradients.set(input.name, known ? add(graph, known, inputGradient) : inputGradient);
    }
  }
  graph.tape.splice(0);
  return parameters.map((parameter) => {
    const gradient = gradients.get(parameter.name);
    assert(gradient, `no gradient reaches the parameter ${parameter.name}`);
    return gradient;
  });
}

/** Prefix of the names under which accumulators are fed. */
export const accumulatorPrefix = "accumulator.";

/**
 * Adds a parameter's gradient to an accumulator that is fed; the result may be written over it in place, so that
 * micro-batches add up without another pass. A matrix product adds its result itself, without an array between.
 */
export function accumulate(graph: Graph, name: string, gradient: Tensor): Tensor {
  const accumulator = graph.input(accumulatorPrefix + name, gradient.shape);
  const index = graph.nodes.findIndex(({ outputs }) => outputs[0] === gradient.name);
  const node = graph.nodes[index];
  if (node?.operator !== "Gemm" || node.inputs.length > 2)
    return graph.node("Add", [accumulator, gradient], gradient.shape);
  graph.nodes[index] = { ...node, inputs: [...node.inputs, accumulator.name] };
  return gradient;
}
