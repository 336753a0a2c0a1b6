import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { element, embeddedJson, fragment } from "./markup.ts";

describe("markup", () => {
  it("escapes text and attributes and nests elements", () => {
    const inner = element("b", { title: 'a"b' }, "1 < 2 & 3");
    expect(element("p", {}, inner, " '", 5, undefined, false, [" x", inner]).markup).toBe(
      '<p><b title="a&quot;b">1 &lt; 2 &amp; 3</b> &#39;5 x<b title="a&quot;b">1 &lt; 2 &amp; 3</b></p>',
    );
  });

  it("writes bare and absent attributes and elements without an end", () => {
    expect(element("input", { hidden: true, disabled: false, name: undefined, size: 3 }).markup).toBe(
      '<input hidden size="3">',
    );
  });

  it("never lets text open or close an element or an attribute", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("<", ">", '"', "'", "&", "a", "/", "!") }), (text) => {
        expect(fragment(text).markup).not.toMatch(/[<>"']/);
        expect(element("p", { title: text }, text).markup.match(/[<>"]/g)?.join("")).toBe('<"">' + "<>");
      }),
    );
  });
});

describe("embedded JSON", () => {
  it("cannot end its script element and parses to the same value", () => {
    const value = { text: "</script><!--<script>&amp;\u2028\u2029", more: ["<", 1, null] };
    const { markup } = embeddedJson(value);
    expect(markup).not.toMatch(/[<>&\u2028\u2029]/);
    expect(JSON.parse(markup)).toEqual(value);
  });
});
