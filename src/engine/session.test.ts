import { expect, test } from "vitest";
import { EngineError } from "../errors.ts";
import { Graph } from "./graph.ts";
import { add } from "./operators.ts";
import { Session } from "./session.ts";

test("a run that fails is known from a graph that cannot be had: it may succeed where there is more memory", async () => {
  const graph = new Graph();
  const sum = add(graph, graph.input("a", ["M"]), graph.input("b", ["M"]));
  const session = await Session.create(graph, [sum], { threads: 1 });
  const feed = (length: number) => ({ data: new Float32Array(length), shape: [length] });
  const run = session.run(
    new Map([
      ["a", feed(2)],
      ["b", feed(3)],
    ]),
    [sum.name],
  );
  await expect(run).rejects.toThrow(EngineError);
  await expect(run).rejects.toMatchObject({ kind: "failed" });
  await session.close();
});
