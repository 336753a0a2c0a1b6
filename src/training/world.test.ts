import { expect, test } from "vitest";
import { startServer } from "../shared/server.fixture.ts";
import { processWorld } from "./world.ts";

test("all calls of a process share connections that are kept, whoever opened the world", async () => {
  const ports = new Set<number | undefined>();
  const server = await startServer(() => (response) => {
    ports.add(response.req.socket.remotePort);
    response.end("{}");
  });
  for (const world of [processWorld(), processWorld()]) {
    const reply = await world.fetch(server.url, { redirect: "manual" });
    expect(Buffer.from(await reply.arrayBuffer()).toString()).toBe("{}");
  }
  expect(ports.size).toBe(1);
});
