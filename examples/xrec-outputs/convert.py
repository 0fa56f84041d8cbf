"""The texts that XRec's authors publish (amazon and google, 3,000 each), as files that cfbench reads.

    python convert.py FOLDER

FOLDER holds ``amazon_test_outputs.jsonl.gz`` and ``google_test_outputs.jsonl.gz``: a line each with uid, iid,
prediction and reference. Written are, beside this file, ``made/amazon.jsonl`` and ``made/google.jsonl`` (user, item,
text: the references, which are the evidence) and ``made/texts.jsonl`` (dataset, model, user, item, text). The model
``xrec-elsewhere`` is a control: what XRec wrote for some other row, so that every text is used once.
"""

import gzip
import json
import random
import sys
from pathlib import Path

NAMES = ("amazon", "google")


def main(folder: Path, made: Path) -> None:
    made.mkdir(exist_ok=True)
    lines = []
    for name in NAMES:
        with gzip.open(folder / f"{name}_test_outputs.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        who = [{"user": str(row["uid"]), "item": str(row["iid"])} for row in rows]
        texts = [row["prediction"].strip() for row in rows]
        references = [{**of, "text": row["reference"]} for of, row in zip(who, rows, strict=True)]
        write(made / f"{name}.jsonl", references)
        for model, written in (("xrec", texts), ("xrec-elsewhere", of_another_row(texts))):
            labels = {"dataset": name, "model": model}
            lines += [{**labels, **of, "text": text} for of, text in zip(who, written, strict=True)]
    write(made / "texts.jsonl", lines)


def of_another_row(texts: list[str]) -> list[str]:
    """Each row has the text of the next one in a random circle, none its own."""
    circle = random.Random(0).sample(range(len(texts)), len(texts))
    found = list(texts)
    for place, following in zip(circle, circle[1:] + circle[:1], strict=True):
        found[place] = texts[following]
    return found


def write(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent / "made")
