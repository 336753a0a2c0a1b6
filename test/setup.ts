// A library is silent: any console call inside a test is a defect of the code under test.
import { beforeEach, vi } from "vitest";

beforeEach(() => {
  for (const method of ["log", "info", "warn", "error", "debug"] as const) {
    vi.spyOn(console, method).mockImplementation((...values: unknown[]) => {
      throw new Error(`console.${method} was called: ${values.map(String).join(" ")}`);
    });
  }
});
