import { onTestFinished } from "vitest";
import { policySuite } from "../../rollout/policy.suite.ts";
import { tinyTokenizer } from "../engine.fixture.ts";
import { openTinkerEngine } from "./tinker-engine.fixture.ts";
import { startTinkerServer } from "./tinker-server.fixture.ts";

policySuite("a policy on a Tinker server", {
  create: async () => {
    const { url } = await startTinkerServer();
    const engine = await openTinkerEngine(url);
    onTestFinished(() => engine.close());
    return {
      policy: engine.policy(),
      tokenizer: tinyTokenizer,
      prompts: ["the river flows", "which capital lies", "the longest river of"],
    };
  },
});
