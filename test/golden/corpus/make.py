"""Makes the binary files that the tests of the corpus readers read; Node has no writer for them.

    python3 make.py     (pyarrow 26.0.1, and zstd 1.5 as a command)
"""
import bz2
import json
import pathlib
import subprocess
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent
lines = [json.dumps({"id": str(n), "title": f"Title {n}", "text": f"Text of number {n}, é."}, ensure_ascii=False) for n in range(6)]
halves = ["\n".join(lines[:3]) + "\n", "\n".join(lines[3:]) + "\n"]

# Two frames and two streams, cut inside no line.
frames = b"".join(subprocess.run(["zstd", "-q", "-c"], input=half.encode(), capture_output=True, check=True).stdout for half in halves)
(here / "corpus.jsonl.zst").write_bytes(frames)
(here / "corpus.jsonl.bz2").write_bytes(b"".join(bz2.compress(half.encode()) for half in halves))

passages = pa.table({
    "_id": pa.array([7, 8, 2**60], pa.int64()),
    "title": pa.array(["A", None, "C"]),
    "text": pa.array(["first", "second", "third"]),
    "tags": pa.array([["x", "y"], [], None], pa.list_(pa.string())),
})
for codec in ["snappy", "zstd", "gzip", "brotli", "none"]:
    pq.write_table(passages, here / f"passages-{codec}.parquet", compression=codec, row_group_size=2)
pq.write_table(passages.drop(["text", "_id"]), here / "no-text.parquet")
pq.write_table(pa.table({"text": ["one", "two"]}), here / "no-id.parquet")

# As Search-R1 writes its training and test files.
target = pa.struct([("target", pa.list_(pa.string()))])
rows = {
    "data_source": ["nq", "hotpotqa"],
    "prompt": [[{"role": "user", "content": "Answer the given question. Question: who wrote it?\n"}], [{"role": "user", "content": "Question: where?"}]],
    "ability": ["fact-reasoning"] * 2,
    "reward_model": pa.array([{"style": "rule", "ground_truth": {"target": ["Ann", "Ann B."]}}, {"style": "rule", "ground_truth": {"target": ["here"]}}]),
    "extra_info": [{"index": 0, "split": "train"}, {"index": 1, "split": "train"}],
}
pq.write_table(pa.table(rows), here / "search-r1-prompt-only.parquet")
pq.write_table(pa.table({"id": ["train_0", "train_0"], "question": ["who wrote it?", "where?"], "golden_answers": [["Ann", "Ann B."], ["here"]], **rows}), here / "search-r1.parquet")

# The smallest Word document: a heading, a paragraph, a table.
def paragraph(text, style=""):
    return f"<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>"

heading = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
body = paragraph("The lamp", heading) + paragraph("It burns &amp; shines.") + "<w:tbl><w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in ["oil", "wick"]) + "</w:tr></w:tbl>"
word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
relations = "http://schemas.openxmlformats.org/package/2006/relationships"
office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
content = "application/vnd.openxmlformats-officedocument.wordprocessingml"
with zipfile.ZipFile(here / "lamp.docx", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, text in {
        "[Content_Types].xml": f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="{content}.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="{content}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "word/styles.xml": f'<w:styles xmlns:w="{word}"><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>',
        "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
    }.items():
        archive.writestr(zipfile.ZipInfo(name), '<?xml version="1.0" encoding="UTF-8"?>' + text)
