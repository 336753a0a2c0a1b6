/**
 * The report in a real browser, made of a made-up run whose documents try to break out of the page. Needs chromium
 * at CHROMIUM_PATH or /usr/bin/chromium; skipped with a message where there is none.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hostileText, makeUpRun } from "./made-up-run.ts";

const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
const hasBrowser = existsSync(executablePath);

describe.skipIf(!hasBrowser)(
  `the report in a browser${hasBrowser ? "" : ` (skipped: no chromium at ${executablePath}; set CHROMIUM_PATH)`}`,
  () => {
    let folder: string;
    let address: string;
    let browser: Browser;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "forager-report-"));
      address = pathToFileURL(await makeUpRun(join(folder, "run"))).href;
      const args = [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ];
      browser = await chromium.launch({ executablePath, args });
    });
    afterAll(async () => {
      await browser?.close();
      await rm(folder, { recursive: true, force: true });
    });

    async function openReport(options: { width?: number; colorScheme?: "light" | "dark" } = {}) {
      const { width = 1280, colorScheme = "light" } = options;
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const problems: string[] = [];
      const requests: string[] = [];
      page.on("console", (message) => problems.push(message.text()));
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(address);
      await page.locator("#list button").first().waitFor();
      return { page, problems, requests };
    }

    const choose = (page: Page, name: string, value: string) =>
      page.locator(`select[name=${name}]`).selectOption(value);

    it.each([
      { width: 1280, colorScheme: "light" },
      { width: 1280, colorScheme: "dark" },
      { width: 400, colorScheme: "light" },
      { width: 400, colorScheme: "dark" },
    ] as const)(
      "loads nothing, logs nothing and does not overflow at $width px, $colorScheme",
      async (options) => {
        const { page, problems, requests } = await openReport(options);
        await page.locator("#sources details").evaluateAll((all) => {
          for (const details of all) (details as HTMLDetailsElement).open = true;
        });
        expect(problems).toEqual([]);
        expect(requests).toEqual([address]);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(overflow).toBeLessThanOrEqual(0);
        const cut = await page.evaluate(
          () =>
            Array.from(document.querySelectorAll(".scroll")).filter(
              (box) => box.scrollWidth > box.clientWidth,
            ).length,
        );
        expect(cut).toBe(0);
        const [light, dark] = ["rgb(251, 250, 248)", "rgb(20, 22, 26)"];
        const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        expect(background).toBe(options.colorScheme === "light" ? light : dark);
        await page.close();
      },
    );

    it("says at the top what changed and draws every chart with a description", async () => {
      const { page } = await openReport();
      expect(await page.locator("h1").textContent()).toMatch(
        /^Exact match rose from 0\.\d\d .* on 96 held-out questions$/,
      );
      const charts = await page
        .locator("figure svg")
        .evaluateAll((all) => all.map((svg) => svg.getAttribute("aria-label")));
      expect(charts.length).toBeGreaterThanOrEqual(12);
      for (const description of charts) expect(description).toMatch(/from .* to /);
      await page.close();
    });

    it("shows hostile text as text and runs none of it", async () => {
      const { page, problems } = await openReport();
      await page.locator("input[name=words]").fill("painter 0?");
      expect(await page.locator("#detail").textContent()).toContain(hostileText);
      expect(await page.locator("#detail img, #detail svg").count()).toBe(0);
      expect(await page.evaluate(() => "broken" in globalThis)).toBe(false);
      expect(problems).toEqual([]);
      await page.close();
    });

    it("shows a question before and after side by side, with gold answers and gold passages marked", async () => {
      const { page } = await openReport();
      await choose(page, "change", "better");
      expect(await page.locator("#detail h4").allTextContents()).toEqual(["before", "after"]);
      const boxes = await page
        .locator("#detail article")
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
      expect(boxes[0]?.top).toBe(boxes[1]?.top);
      expect(await page.locator("#detail .gold-answer").count()).toBeGreaterThan(1);
      expect(await page.locator("#detail li.gold-passage").first().textContent()).toContain("★");
      expect(await page.locator("#detail strong.bad").count()).toBe(1);
      await page.close();
    });

    it("filters by set, reward, hops and words, says how many are left, and shows all again", async () => {
      const { page } = await openReport();
      const counted = async (): Promise<number[]> =>
        (await page.locator("#count").textContent())?.match(/\d+/g)?.map(Number) ?? [];
      const [all, total] = await counted();
      expect(all).toBe(total);
      await choose(page, "set", "grpo");
      const [trained = 0] = await counted();
      await choose(page, "reward", "none");
      const [wrong = 0] = await counted();
      expect(trained).toBeLessThan(total as number);
      expect(wrong).toBeGreaterThan(0);
      expect(wrong).toBeLessThan(trained);
      expect(await page.locator("#list .worth.good").count()).toBe(0);
      await choose(page, "hops", "2");
      expect(await page.locator("#detail .facts").first().textContent()).toContain("2 hops");
      await page.locator("input[name=words]").fill("no such words");
      expect(await counted()).toEqual([0, total]);
      expect(await page.locator("#detail").textContent()).toBe("No trajectory matches these filters.");
      await page.locator("button[type=reset]").click();
      await page.locator("#list button").first().waitFor();
      expect(await counted()).toEqual([total, total]);
      await page.close();
    });

    it("shows log-probability and advantage of a token by pointer, and by keyboard", async () => {
      const { page } = await openReport();
      await choose(page, "set", "grpo");
      const tokens = page.locator("#detail .token");
      const tip = page.locator("#tip");
      await tokens.nth(2).hover();
      expect(await tip.textContent()).toMatch(
        /^log-probability −?\d\.\d{3} \(\d+ %\) · advantage [+−]\d\.\d\d$/,
      );
      await page.mouse.move(1, 1);
      await tip.waitFor({ state: "hidden" });
      await tokens.first().focus();
      await tip.waitFor();
      const first = await tip.textContent();
      await page.keyboard.press("ArrowRight");
      expect(await tokens.nth(1).evaluate((token) => token === document.activeElement)).toBe(true);
      expect(await tip.textContent()).not.toBe(first);
      await page.keyboard.press("Escape");
      await tip.waitFor({ state: "hidden" });
      await page.close();
    });

    it("says which tokens are in the loss and which are masked", async () => {
      const { page } = await openReport();
      await choose(page, "set", "grpo");
      const labels = await page.locator("#detail .segment-label").allTextContents();
      for (const label of labels)
        expect(label).toMatch(/^(policy · in the loss|environment · masked|prompt · masked) · \d+ tokens$/);
      expect(new Set(labels.map((label) => label.split(" ")[0]))).toEqual(
        new Set(["prompt", "policy", "environment"]),
      );
      await page.close();
    });
  },
);
