/**
 * The pages of `forager table` and `forager sweep` in a real browser, made of made-up numbers. Needs chromium at
 * CHROMIUM_PATH or /usr/bin/chromium; skipped with a message where there is none.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { methodPage } from "../src/reporting/method-table/page.ts";
import { sweepHtml } from "../src/reporting/sweep-report.ts";
import { hostileName, madeUpSweep, madeUpTable } from "./made-up-methods.ts";

const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
const hasBrowser = existsSync(executablePath);

describe.skipIf(!hasBrowser)(
  `pages of tables and sweeps in a browser${hasBrowser ? "" : ` (skipped: no chromium at ${executablePath}; set CHROMIUM_PATH)`}`,
  () => {
    let folder: string;
    let browser: Browser;
    const addresses: Record<string, string> = {};

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "forager-pages-"));
      for (const [name, html] of [
        ["table", methodPage(madeUpTable())],
        ["sweep", sweepHtml(madeUpSweep())],
      ] as const) {
        await writeFile(join(folder, `${name}.html`), html);
        addresses[name] = pathToFileURL(join(folder, `${name}.html`)).href;
      }
      const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
      browser = await chromium.launch({ executablePath, args });
    });
    afterAll(async () => {
      await browser?.close();
      await rm(folder, { recursive: true, force: true });
    });

    async function open(name: string, { width = 1280, colorScheme = "light" as "light" | "dark" } = {}) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const problems: string[] = [];
      const requests: string[] = [];
      page.on("console", (message) => problems.push(message.text()));
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(addresses[name] as string);
      return { page, problems, requests };
    }

    it.each(
      ["table", "sweep"].flatMap((name) =>
        ([1280, 400] as const).flatMap((width) =>
          (["light", "dark"] as const).map((colorScheme) => ({ name, width, colorScheme })),
        ),
      ),
    )(
      "$name loads nothing, logs nothing and does not overflow at $width px, $colorScheme",
      async (options) => {
        const { page, problems, requests } = await open(options.name, options);
        expect(problems).toEqual([]);
        expect(requests).toEqual([addresses[options.name]]);
        expect(
          await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
        ).toBeLessThanOrEqual(0);
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        expect(background).toBe(options.colorScheme === "light" ? "rgb(251, 250, 248)" : "rgb(20, 22, 26)");
        await page.close();
      },
    );

    it.each(["table", "sweep"])("%s shows hostile names as text, and describes every chart", async (name) => {
      const { page } = await open(name);
      expect(await page.locator("body").textContent()).toContain(hostileName);
      expect(await page.locator("img").count()).toBe(0);
      const charts = await page
        .locator("svg")
        .evaluateAll((all) => all.map((svg) => svg.getAttribute("aria-label")));
      expect(charts.length).toBeGreaterThanOrEqual(4);
      for (const description of charts) expect(description).toMatch(/: .+ .*to .*\.$/);
      await page.close();
    });

    it.each(["table", "sweep"])("no two labels of a chart of %s lie on each other", async (name) => {
      const { page } = await open(name);
      const overlaps = await page.locator("svg").evaluateAll((charts) =>
        charts.flatMap((chart) => {
          const labels = Array.from(chart.querySelectorAll("text.label")).map((label) =>
            label.getBoundingClientRect(),
          );
          return labels.flatMap((a, i) =>
            labels
              .slice(i + 1)
              .filter(
                (b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom,
              ),
          );
        }),
      );
      expect(overlaps).toEqual([]);
      await page.close();
    });

    it("the table accounts for every method and says what differs from the reference", async () => {
      const { page } = await open("table");
      const rows = await page.locator("table").first().locator("tbody tr").count();
      expect(rows).toBe(7);
      expect(await page.locator(".accounts li.bad").count()).toBe(1);
      expect(await page.locator("td .good").count()).toBeGreaterThan(0);
      await page.close();
    });
  },
);
