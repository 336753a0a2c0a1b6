import fc from "fast-check";
import { expect, test } from "vitest";
import { bestWindow, htmlText } from "./html-text.ts";

test("blocks stand on lines of their own and what is not for reading is left out", async () => {
  const page =
    "<html><head><title> A\n page </title><style>p{}</style></head><body><nav>Menu</nav>" +
    "<div>One<br>two <i>three</i></div><ul><li>a<li>b</ul><footer>end</footer><p>&lt;tag&gt;";
  expect(await htmlText(page)).toEqual({ title: "A page", text: "One\ntwo three\na\nb\n<tag>" });
});

test("broken markup is read as far as it goes", async () => {
  expect((await htmlText("<p>open <b>bold <p>next <script>lost")).text).toBe("open bold\nnext");
  expect(await htmlText("")).toEqual({ title: "", text: "" });
});

test("the window is where most words of the query are", () => {
  const filler = "Nothing to see in this long sentence about other things. ".repeat(40);
  const text = `${filler}The Vltava is the longest river of Czechia, 430 km long. ${filler}`;
  const window = bestWindow(text, "longest river Czechia", 200);
  expect(window).toContain("Vltava is the longest river of Czechia");
  expect(window.length).toBeLessThanOrEqual(200);
  expect(bestWindow("short", "query", 100)).toBe("short");
});

test("the window is part of the text, never longer than asked, for any text", () => {
  fc.assert(
    fc.property(
      fc.string({ maxLength: 400 }),
      fc.string(),
      fc.integer({ min: 10, max: 200 }),
      (text, query, most) => {
        const window = bestWindow(text, query, most);
        expect(text).toContain(window);
        expect(window.length).toBeLessThanOrEqual(most);
      },
    ),
  );
});
