"""Measures every format on every shape of data, and writes docs/study.md and docs/study.json.

    python benches/python/study.py [--turns 5] [--page]

`--page` writes the page again from the figures of the last run. Sizes are the same in every run;
`tests/python/test_study.py` checks them. Speeds are ratios within one run: formats take turns.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import magicbyte
import shapes
import study_page
from magic3 import KIP_931, Idea, compare
from magicbyte import Compression
from magicbyte.conversion import Converter
from magicbyte.jobs.advise import Layout, advise
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.read import AdviseOptions
from processes import pin

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "study.json"
PAGE = ROOT / "docs" / "study.md"
FIXTURES = ROOT / "tests" / "data" / "kafka"

FORMS: dict[str, tuple[int, Idea]] = {
    "magic 0": (0, Idea(0)),
    "magic 1": (1, Idea(0)),
    "magic 2": (2, Idea(0)),
    "KIP-931": (3, KIP_931),
    "tagged fields": (3, KIP_931 | Idea.TAGGED_FIELDS),
    "both timestamps": (3, KIP_931 | Idea.BOTH_TIMESTAMPS),
    "batch headers": (3, KIP_931 | Idea.BATCH_HEADERS),
    "fields first": (3, KIP_931 | Idea.FIELDS_FIRST),
    "two sections": (3, KIP_931 | Idea.TWO_SECTIONS),
}
CODECS = [one.name.lower() for one in Compression]
# A slow producer's, a producer's default batch.size, and the largest that a broker accepts by default.
BATCHES = {"1 KiB": 1 << 10, "16 KiB": 16 << 10, "1 MiB": 1 << 20}
TOTALS = {"1 KiB": 256 << 10, "16 KiB": 1 << 20, "1 MiB": 2 << 20}
LEVELS = [("snappy", None), ("lz4", None), ("gzip", 1), ("gzip", 6), ("gzip", 9)] + [
    ("zstd", level) for level in (1, 3, 6, 9, 12)
]
TIMES = ("encode_ns", "decode_ns", "validate_ns")

Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="only the page, from docs/study.json")
    arguments = parser.parse_args()
    if not arguments.page:
        FIGURES.write_text(json.dumps(measured(arguments.turns), indent=1) + "\n")
    PAGE.write_text(study_page.page(json.loads(FIGURES.read_text())))


def measured(turns: int) -> Figures:
    pin()
    begin = time.monotonic()
    figures: Figures = {"forms": {}, "speeds": {}, "levels": {}, "level_speeds": {}}
    for name, data in sets():
        print(f"{name}: {len(data):,} bytes, {time.monotonic() - begin:.0f} s", flush=True)
        figures["forms"][name], figures["speeds"][name] = of_set(data, turns)
    for batch in ("16 KiB", "1 MiB"):
        for shape in shapes.SHAPES:
            name = f"{shape}, {batch}"
            print(f"levels: {name}, {time.monotonic() - begin:.0f} s", flush=True)
            data = shapes.batches(shape, TOTALS[batch], BATCHES[batch])
            figures["levels"][name], figures["level_speeds"][name] = of_levels(data, turns)
    figures["dictionaries"] = {
        f"{shape}, {batch}": of_dictionary(shape, size)
        for batch, size in BATCHES.items()
        for shape in shapes.SHAPES
    }
    figures["header_bytes"] = header_bytes(shapes.batches("traced", TOTALS["16 KiB"], BATCHES["16 KiB"]))
    figures["seconds"] = round(time.monotonic() - begin)
    return figures


def sets(names: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """The shapes in small and large batches, and what real brokers wrote; all, or those with these names."""
    for batch in BATCHES:
        for shape in shapes.SHAPES:
            if names is None or f"{shape}, {batch}" in names:
                yield f"{shape}, {batch}", shapes.batches(shape, TOTALS[batch], BATCHES[batch])
    if names is None or "fixtures" in names:
        yield "fixtures", fixtures()


def fixtures() -> bytes:
    """The data batches in tests/data, uncompressed, as magic 2; without those that have gaps."""
    converter = Converter(Compression.NONE)
    found = bytearray()
    for path in sorted(FIXTURES.glob("*/*.log")):
        try:
            for batch in magicbyte.read_batches(path.read_bytes()):
                for plain in magicbyte.read_batches(converter.up_convert(batch.to_bytes())):
                    offsets = [record.offset - plain.base_offset for record in plain]
                    if offsets and not plain.is_control and offsets == list(range(len(offsets))):
                        found += plain.to_bytes()
        except magicbyte.Error:
            # A torn tail; or damage, which is there on purpose.
            continue
    return bytes(found)


def header_bytes(data: bytes) -> int:
    """Bytes of the headers of records, with their lengths."""
    return sum(
        len(key) + len(value or b"") + 2
        for batch in magicbyte.read_batches(data)
        for record in batch
        for key, value in record.headers
    )


def takes(codec: str, form: str) -> bool:
    return codec != "zstd" or FORMS[form][0] >= 2


def sizes(data: bytes, codecs: list[str] = CODECS) -> dict[str, dict[str, Any]]:
    """By codec and form: bytes, and bytes that validation decompressed."""
    return {codec: {name: kept(one) for name, one in each_form(data, codec)} for codec in codecs}


def each_form(data: bytes, codec: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for form, (magic, ideas) in FORMS.items():
        if takes(codec, form):
            yield form, compare(data, magic, ideas, compression=Compression[codec.upper()])


def kept(one: Mapping[str, Any]) -> dict[str, int]:
    return {name: one[name] for name in ("records", "size", "inspected")}


def of_set(data: bytes, turns: int) -> tuple[Figures, Figures]:
    """By codec and form: sizes, and how many times faster than magic 2 it is encoded, decoded, validated."""
    found: Figures = {}
    speeds: Figures = {}
    for codec in CODECS:
        best: dict[str, dict[str, int]] = {}
        for _ in range(turns):
            for form, one in each_form(data, codec):
                found.setdefault(codec, {})[form] = kept(one)
                times = best.setdefault(form, {name: one[name] for name in TIMES})
                best[form] = {name: min(times[name], one[name]) for name in TIMES}
        magic_2 = best["magic 2"]
        speeds[codec] = {
            form: [round(magic_2[name] / times[name], 2) for name in TIMES] for form, times in best.items()
        }
    return found, speeds


def level_name(codec: str, level: int | None) -> str:
    return codec if level is None else f"{codec} {level}"


def of_levels(
    data: bytes, turns: int, levels: list[tuple[str, int | None]] = LEVELS
) -> tuple[Figures, Figures]:
    """Sizes of magic 2 by codec and level, and MB/s of writing and reading as multiples of lz4's."""
    found: Figures = {"none": len(data)}
    best: dict[str, list[int]] = {}
    for _ in range(turns):
        for codec, level in levels:
            one = compare(data, 2, compression=Compression[codec.upper()], level=level)
            name = level_name(codec, level)
            found[name] = one["size"]
            times = [one["encode_ns"], one["decode_ns"]]
            best[name] = [min(pair) for pair in zip(times, best.get(name, times), strict=True)]
    lz4 = best["lz4"]
    speeds = {name: [round(a / b, 2) for a, b in zip(lz4, own, strict=True)] for name, own in best.items()}
    return found, speeds


def of_dictionary(shape: str, batch_bytes: int) -> Figures | None:
    """What `advise` says about a dictionary."""
    with tempfile.TemporaryDirectory() as directory:
        partition = Path(directory) / "study-0"
        partition.mkdir()
        (partition / f"{0:020}.log").write_bytes(shapes.batches(shape, 4 << 20, batch_bytes))
        layouts = [Layout("none", None, None)]
        options = AdviseOptions(window_bytes=8 << 20)
        (topic,) = advise([directory], LocalEngine(), options, layouts=layouts)["topics"]
    found = topic["dictionary"]
    return None if found is None else dict(found)


if __name__ == "__main__":
    main()
