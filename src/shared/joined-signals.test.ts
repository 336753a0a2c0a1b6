import { describe, expect, test } from "vitest";
import { JoinedSignals } from "./joined-signals.ts";

describe("a joined signal", () => {
  test("aborts with the caller's or the owner's, for its reason", () => {
    const [owner, caller] = [new AbortController(), new AbortController()];
    const signals = new JoinedSignals(owner.signal);
    const mine = signals.take(caller.signal).signal;
    const another = signals.take(undefined).signal;
    caller.abort("enough");
    expect([mine.reason, another.aborted]).toEqual(["enough", false]);
    owner.abort("closed");
    expect(another.reason).toBe("closed");
    expect(signals.take(new AbortController().signal).signal.reason).toBe("closed");
  });

  test("is shared by those who come with the same signal, and made anew when all have gone", () => {
    const signals = new JoinedSignals(new AbortController().signal);
    const caller = new AbortController();
    const [first, second] = [signals.take(caller.signal), signals.take(caller.signal)];
    expect(second.signal).toBe(first.signal);
    first.giveBack();
    const third = signals.take(caller.signal);
    expect(third.signal).toBe(first.signal);
    second.giveBack();
    third.giveBack();
    expect(signals.take(caller.signal).signal).not.toBe(first.signal);
  });
});
