import { describe, expect, test } from "vitest";
import { DataFormatError } from "../../errors.ts";
import { fastest } from "../reading.suite.ts";
import { tidyText } from "./document.ts";
import { readDocx } from "./docx.ts";
import { encodingOfHtml, readHtml } from "./html.ts";
import { readMarkdown } from "./markdown.ts";
import { readPdf } from "./pdf.ts";

describe("HTML", () => {
  test("gives the title of the head and what a reader sees", async () => {
    const page = `<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>
      <nav><ul><li>Home</li></ul></nav><h1>Head</h1>
      <p>One   <b>bold</b>, caf&eacute;&nbsp;x<br>next<script>alert("</p>")</script>
      <p hidden>gone</p><div style="display: none"><p>gone</p></div>
      <ul><li>first<li>second</ul>
      <table><tr><th>a</th><td>b</td></tr></table><pre>x
  y</pre><button>Send</button></body></html>`;
    expect(await readHtml(page)).toEqual({
      title: "A & B",
      text: "Head\n\nOne bold, café\u00a0x\nnext\n\nfirst\nsecond\n\na b\n\nx\n  y",
    });
  });

  test("takes the first heading as title where the head has none", async () => {
    expect((await readHtml("<h1>A <i>b</i></h1><h1>C</h1>")).title).toBe("A b");
  });

  test("keeps navigation where a page has no other text, as when it is never closed", async () => {
    const page = "<title>T</title><nav><a>Home</a><script>no</script><h1>Head</h1><p>All of the text.";
    expect(await readHtml(page)).toEqual({ title: "T", text: "Home\n\nHead\n\nAll of the text." });
    expect((await readHtml(`${page}</nav><p>More.`)).text).toBe("More.");
    expect((await readHtml("<p hidden>gone</p><script>no</script>")).text).toBe("");
  });

  test("of ten times as many elements takes about ten times as long, not a hundred", async () => {
    const cells = (count: number) => "<td>x</td> y ".repeat(count);
    const few = await fastest(() => readHtml(cells(8000)));
    expect(await fastest(() => readHtml(cells(80_000)))).toBeLessThan(40 * few);
    expect((await readHtml(cells(80_000))).text).toHaveLength(80_000 * "x y ".length - 1);
  });

  test("says which encoding it is in", () => {
    expect(encodingOfHtml(Buffer.from('<meta charset="windows-1252">'))).toBe("windows-1252");
    const long = '<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1">';
    expect(encodingOfHtml(Buffer.from(long))).toBe("ISO-8859-1");
    expect(encodingOfHtml(Buffer.from("<p>charset=x"))).toBeUndefined();
  });
});

describe("Markdown", () => {
  test("is reduced to its text; the title is its first heading", async () => {
    const source = [
      "Intro with `a*b*c` and **bold**, *em*, __strong__, snake_case_name, ~~old~~.",
      "",
      "## The *title* ##",
      "> quoted [link](http://x) and ![picture](p.png) <b>tag</b> \\* &amp; <https://y.z>",
      "- item",
      "- [x] done",
      "1. first",
      "",
      "| a | b |",
      "|---|:-:|",
      "| 1 | 2 |",
      "<!-- a",
      "comment -->",
      "```js",
      "# not a heading",
      "```",
      "[ref]: http://x",
      "",
      "---",
      "Under",
      "=====",
    ].join("\n");
    expect(await readMarkdown(source)).toEqual({
      title: "The title",
      text: [
        "Intro with a*b*c and bold, em, strong, snake_case_name, old.",
        "",
        "The title",
        "quoted link and picture tag * & https://y.z",
        "item",
        "done",
        "1. first",
        "",
        "a | b",
        "1 | 2",
        "",
        "# not a heading",
        "",
        "Under",
      ].join("\n"),
    });
  });

  test("has a title and more in its front matter", async () => {
    const source = "---\ntitle: 'A: b'\ntags: [x, y]\n---\r\n# Other\ntext";
    expect(await readMarkdown(source)).toEqual({
      title: "A: b",
      text: "Other\ntext",
      extra: { frontMatter: { tags: ["x", "y"] } },
    });
    expect((await readMarkdown("---\njust text\n---\nmore")).text).toBe("just text\nmore");
  });

  test("whose front matter cannot be read has none", async () => {
    const circular = await readMarkdown("---\na: &a\n  b: *a\n---\n\n# Top");
    expect(circular.extra).toBeUndefined();
    expect(circular.text).toContain("b: *a\n\nTop");
    expect((await readMarkdown("---\na: *nobody\n---\n\ntext")).extra).toBeUndefined();
  });

  test("has a heading that is underlined as title", async () => {
    expect((await readMarkdown("Top\n===\n\ntext")).title).toBe("Top");
  });
});

describe("tidied text", () => {
  test("has no blanks at the ends of lines, and those inside as they were", () => {
    expect(tidyText("\n a  b \t\n\n\n\nc\u00a0\r\nd \u2028 \u2028e \n")).toBe(" a  b\n\nc\nd\u2028e");
  });

  test("takes no longer for a run of blanks inside a line than for many words, by far", async () => {
    const text = `a${" ".repeat(60_000)}b`;
    expect(tidyText(text)).toBe(text);
    const words = "a ".repeat(30_000);
    expect(await fastest(() => tidyText(text))).toBeLessThan(300 * (await fastest(() => tidyText(words))));
  });
});

/** A PDF file with a line of text a page; a page of no text is empty. */
function makePdf(pages: readonly string[], info = ""): Buffer {
  const kids = pages.map((_, i) => `${4 + 2 * i} 0 R`).join(" ");
  const objects = [
    "<</Type/Catalog/Pages 2 0 R>>",
    `<</Type/Pages/Kids[${kids}]/Count ${pages.length}>>`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ...pages.flatMap((text, i) => {
      const content = text === "" ? "" : `BT /F 12 Tf 20 100 Td (${text}) Tj 0 -14 Td (more) Tj ET`;
      const resources = "/MediaBox[0 0 300 300]/Resources<</Font<</F 3 0 R>>>>";
      return [
        `<</Type/Page/Parent 2 0 R${resources}/Contents ${5 + 2 * i} 0 R>>`,
        `<</Length ${content.length}>>\nstream\n${content}\nendstream`,
      ];
    }),
    `<<${info}>>`,
  ];
  let file = "%PDF-1.4\n";
  const places = objects.map((object, i) => {
    const place = file.length;
    file += `${i + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, "0")} 00000 n \n`;
  });
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join("")}`;
  const trailer = `trailer<</Size ${objects.length + 1}/Root 1 0 R/Info ${objects.length} 0 R>>`;
  return Buffer.from(`${file}${table}${trailer}\nstartxref\n${file.length}\n%%EOF`);
}

describe("PDF", () => {
  test("gives the text page by page", async () => {
    expect(await readPdf(makePdf(["One", "", "Three"], "/Title(The book)"), "a.pdf")).toEqual({
      title: "The book",
      text: "One\nmore\n\n\n\nThree\nmore",
      pageStarts: [0, 10, 12],
    });
  });

  test("without text, cut short or of another kind is refused", async () => {
    await expect(readPdf(makePdf([""]), "a.pdf")).rejects.toThrow(
      /a\.pdf: expected text, got 1 pages without any; .*OCR/,
    );
    await expect(readPdf(makePdf(["One"]).subarray(0, 150), "a.pdf")).rejects.toThrow(DataFormatError);
    await expect(readPdf(Buffer.from("no"), "a.pdf")).rejects.toThrow(
      /expected a PDF file, got a damaged file/,
    );
  });
});

test("what is no Word document is refused in one line", async () => {
  const reading = readDocx(Buffer.from("no zip"), "a.docx");
  await expect(reading).rejects.toThrow(
    /^a\.docx: expected a Word document \(DOCX\), got .*save it again as \.docx$/,
  );
});
