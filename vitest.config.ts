import { defineConfig } from "vitest/config";

// unit: beside the sources and in test/; no network, no data from outside the project.
// examples: what the README shows. extended: real data and models, skipped with a message when absent.
const shared = { setupFiles: ["test/setup.ts"], testTimeout: 0, hookTimeout: 0, pool: "forks" as const };
export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: ["test/extended/**"],
          ...shared,
        },
      },
      { test: { name: "examples", include: ["examples/**/*.test.ts"], ...shared } },
      {
        test: {
          name: "extended",
          include: ["test/extended/**/*.test.ts"],
          ...shared,
          fileParallelism: false,
        },
      },
    ],
  },
});
