"""docs/study.md, from the figures in docs/study.json."""

from typing import Any

import study_verdicts

Figures = dict[str, Any]

_HEAD = """\
# A study of formats: what each would cost, and what is true of what is said

Written by `make study` from `docs/study.json`, which it measures; `tests/python/test_study.py` checks the
sizes. Magic 0 and 1 are written as down-conversions write them, magic 2 as a producer does, and the others
are the experimental magic 3 (`crates/magicbyte-magic3`), which no broker or
client reads: KIP-931 as written, and each further idea added to it.

| | |
|---|---|
| KIP-931 | records without attributes; varints for the last offset delta and the timestamps of a batch |
| tagged fields | a count of tagged fields, here 0, after the batch header |
| both timestamps | the append time kept beside the records' own timestamps |
| batch headers | the headers that all records of a batch begin with are stored once |
| fields first | timestamps, offsets and lengths of all records first, then their content; one stream |
| two sections | the same, each part compressed by itself |

The data, always the same bytes (`benches/python/shapes.py`): **events**, JSON of 230 bytes; **sensors**, 28
binary bytes; **traced**, log lines of 90 bytes with four headers, three of them always the same (magic 0
and 1 lose them); **documents**, JSON of 2 KiB. They come in batches of 1 KiB, 16 KiB (a producer's default
`batch.size`) and 1 MiB, before compression. **fixtures** are what brokers from 0.9 to 4.3 wrote
(`tests/data/kafka`), without control batches and gaps. Codecs have Kafka's default levels. Speeds are
multiples of magic 2's in the same run, on one core; more than 1 is faster. Encoding begins with records in
memory; decoding checks CRCs and reads every key, value and header; validation checks CRCs, offsets,
timestamps and whether there are keys. Encoder and decoder of magic 3 are not tuned as those of magic 2 are,
so their speeds are lower bounds.
"""
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_BAR = 24


def page(figures: Figures) -> str:
    """The whole page."""
    parts = [
        _HEAD.strip(),
        f"The run took {figures['seconds']} s.",
        "## Verdicts\n\n" + study_verdicts.table(figures),
        "## What the texts leave open\n\n" + study_verdicts.choices(figures),
        "## Sizes\n\nBytes with each codec, and the difference to magic 2. The bar is that of zstd (of "
        "magic 0 and 1, which have none: of gzip), as a part of magic 2 without compression.",
        *(f"### {name}\n\n{sizes(of)}" for name, of in figures["forms"].items()),
        "## Validation\n\nHow many times faster than magic 2 a batch is validated, and how many bytes are "
        "decompressed for it in zstd batches.",
        validation(figures),
        "## Encoding and decoding\n\nHow many times faster than magic 2: encoding / decoding. "
        "`docs/study.json` has the other forms and codecs.",
        speeds(figures),
        "## Levels\n\nBytes of magic 2 as a share of those without compression, and the speed of writing and "
        "reading as multiples of lz4's.",
        levels(figures),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: list[str], rows: list[list[str]], *, left: int = 1) -> str:
    """A table in Markdown; the first `left` columns are text."""
    ruler = "|".join("---" if number < left else "---:" for number in range(len(head)))
    return "\n".join([f"| {' | '.join(head)} |", f"|{ruler}|", *(f"| {' | '.join(row)} |" for row in rows)])


def sizes(of: Figures) -> str:
    """A row for each form, a column for each codec."""
    whole = of["none"]["magic 2"]["size"]
    rows = []
    for form in of["none"]:
        cells = []
        for codec in _CODECS:
            one = of[codec].get(form)
            base = of[codec]["magic 2"]["size"]
            cells.append("-" if one is None else _size(one["size"], base, is_base=form == "magic 2"))
        barred = (of["zstd"].get(form) or of["gzip"][form])["size"]
        rows.append([form, *cells, bar(barred / whole)])
    return table(["format", *_CODECS, ""], rows)


def _size(size: int, base: int, *, is_base: bool) -> str:
    return f"{size:,}" if is_base else f"{size:,} ({100 * (size / base - 1):+.1f}%)"


def bar(share: float, width: int = _BAR) -> str:
    """A bar of text."""
    return "\N{FULL BLOCK}" * max(1, round(width * min(share, 2)))


def validation(figures: Figures) -> str:
    """A row for each set and codec that compresses, for the forms that differ."""
    forms = ("magic 1", "KIP-931", "fields first", "two sections")
    rows = []
    for name, of in figures["speeds"].items():
        for codec in _CODECS:
            cells = [f"{of[codec][form][2]:.1f}" if form in of[codec] else "-" for form in forms]
            seen = ""
            if codec == "zstd":
                zstd = figures["forms"][name]["zstd"]
                seen = " / ".join(
                    f"{zstd[form]['inspected']:,}" for form in ("magic 2", "fields first", "two sections")
                )
            best = of[codec]["two sections"][2]
            rows.append([name, codec, *cells, seen, bar(best / 10)])
    head = ["data", "codec", *forms, "decompressed: magic 2 / fields first / two sections", "two sections"]
    return table(head, rows, left=2)


def speeds(figures: Figures) -> str:
    """A row for each set and codec, for the forms that differ."""
    forms = ("magic 0", "magic 1", "KIP-931", "batch headers", "fields first", "two sections")
    rows = [
        [name, codec, *(_speed(of[codec].get(form)) for form in forms)]
        for name, of in figures["speeds"].items()
        for codec in ("none", "lz4", "zstd")
    ]
    return table(["data", "codec", *forms], rows, left=2)


def _speed(one: list[float] | None) -> str:
    return "-" if one is None else f"{one[0]:.2f} / {one[1]:.2f}"


def levels(figures: Figures) -> str:
    """A row for each set, a column for each codec and level."""
    names = [name for name in next(iter(figures["levels"].values())) if name != "none"]
    rows = []
    for on, of in figures["levels"].items():
        cells = []
        for name in names:
            write, read = figures["level_speeds"][on][name]
            cells.append(f"{100 * of[name] / of['none']:.1f}%, {write:.2f} / {read:.2f}")
        rows.append([on, *cells])
    return table(["data", *names], rows)
