import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Trajectory } from "../rollout/trajectory.ts";
import { makeRecord, makeTrajectory } from "./made-up.suite.ts";
import {
  fromStored,
  piecesOf,
  storedTrajectorySchema,
  type TrajectoryRecord,
  toStored,
} from "./trajectory-record.ts";

const roundTrip = (record: TrajectoryRecord): TrajectoryRecord =>
  fromStored(storedTrajectorySchema.parse(JSON.parse(JSON.stringify(toStored(record)))));

describe("a trajectory on disk", () => {
  it("comes back as it was", () => {
    const record = makeRecord({
      reward: 1,
      advantage: -0.5,
      scores: { em: 1, f1: 0.5 },
      pieces: [[], ["<search> Ostburg", " </search>"], [], ["<answer> River Aln </answer>"]],
    });
    expect(roundTrip(record)).toEqual(record);
    expect(roundTrip(makeRecord())).toEqual(makeRecord());
  });

  it("comes back as it was without answer, after a failure, and with every kind of text", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, (failure, query) => {
        const trajectory = makeTrajectory({
          answer: undefined,
          stopReason: "retrieverFailure",
          failure,
          turns: [
            { action: { type: "search", query } },
            { action: { type: "invalid", reason: "malformed" } },
          ],
        });
        expect(roundTrip(makeRecord({ trajectory }))).toEqual(makeRecord({ trajectory }));
      }),
    );
  });

  it("holds a passage once, however often it was found", () => {
    const [search, answer] = makeTrajectory().turns as [
      Trajectory["turns"][number],
      Trajectory["turns"][number],
    ];
    const trajectory = makeTrajectory({ turns: [search, search, answer] });
    const json = JSON.stringify(toStored(makeRecord({ trajectory, reward: 1 })).passages);
    expect(json.split("Ostburg is a town").length - 1).toBe(1);
    expect(roundTrip(makeRecord({ trajectory }))).toEqual(makeRecord({ trajectory }));
  });

  it("keeps log-probabilities to a millionth", () => {
    const segments = [{ source: "policy", text: "a", tokens: [1], logprobs: [-0.123456789] }] as const;
    const back = roundTrip(makeRecord({ trajectory: makeTrajectory({ segments }) }));
    expect(back.trajectory.segments[0]?.logprobs).toEqual([-0.123457]);
  });

  it("is refused when a turn names a passage that is not there", () => {
    const stored = { ...toStored(makeRecord()), passages: {} };
    expect(storedTrajectorySchema.safeParse(stored).success).toBe(false);
  });
});

describe("the pieces of a segment", () => {
  const bytes = new TextEncoder().encode("né!");
  const decode = (tokens: readonly number[]): string => new TextDecoder().decode(Uint8Array.from(tokens));
  const policy = { source: "policy", text: "né!", tokens: [...bytes] } as const;
  const prompt = { source: "prompt", text: "q", tokens: [0x71] } as const;

  it("give the text of each token and hold a character back until it is whole", () => {
    const trajectory = makeTrajectory({ segments: [prompt, policy] });
    expect(piecesOf(trajectory, { decode })).toEqual([[], ["n", "", "é", "!"]]);
  });

  it("are empty for a token that is not part of the text, such as the end of the text", () => {
    const withEnd = { ...policy, tokens: [...bytes, 0x2e] };
    expect(piecesOf(makeTrajectory({ segments: [withEnd] }), { decode })).toEqual([["n", "", "é", "!", ""]]);
  });
});
