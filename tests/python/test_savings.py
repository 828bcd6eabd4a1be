"""docs/savings.md: the scenarios that widely read documents calculate, by `magicbyte stats --fields`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli

TEXT = (Path(__file__).parents[2] / "docs/savings.md").read_text()
TIME = 1_714_000_000_000
FORMATS = ("magic_1", "magic_2", "kip_931")
FIELDS = {
    "offset": ("offsets",),
    "message size": ("sizes",),
    "CRC": ("crcs",),
    "magic": ("magic",),
    "attributes": ("attributes",),
    "timestamp": ("timestamps",),
    "key length": ("key_lengths",),
    "value length": ("value_lengths",),
    "headers": ("header_lengths",),
    "only in batch headers": ("leader_epoch", "producer", "records_count"),
    "value": ("values",),
}


Record = tuple[int, int, bytes | None, bytes]


def cost_of(records: Iterable[Record], directory: Path, cli: Cli) -> dict[str, Any]:
    """What one batch of these records costs in each format."""
    builder = magicbyte.RecordsBuilder()
    builder.append_many(records)
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(builder.build())
    formats: dict[str, Any] = cli.json("stats", "--fields", directory)["total"]["formats"]
    return formats


def total(cost: dict[str, dict[str, int]]) -> int:
    return sum(map(sum, (part.values() for part in cost.values())))


def rows_of(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading, by their first cell."""
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in rows[1:]}


def test_each_field_of_a_thousand_values(tmp_path: Path, cli: Cli) -> None:
    values = ((offset, TIME, None, b"v" * 100) for offset in range(1000))
    formats = cost_of(values, tmp_path / "t-0", cli)
    rows = rows_of("A thousand values of 100 bytes")
    per_record = {
        name: [
            sum(part[field] for part in formats[one].values() for field in fields) / 1000 for one in FORMATS
        ]
        for name, fields in FIELDS.items()
    }
    per_record["total"] = [total(formats[one]) / 1000 for one in FORMATS]
    assert {name: cells[2:] for name, cells in rows.items()} == {
        name: [f"{value:.3f}" for value in values] for name, values in per_record.items()
    }
    # Every field is in the table.
    named = [sum(values) for values in zip(*(per_record[name] for name in FIELDS), strict=True)]
    assert named == pytest.approx(per_record["total"])
    # The text's own sum of its fields: what it leaves out is the message size.
    said = [float(cells[0]) for name, cells in rows.items() if cells[0] != "-" and name != "total"]
    assert sum(said) == 130 == 134 - 4


SCENARIOS: dict[str, list[Record]] = {
    "2 values of 5 bytes": [(at, TIME, None, b"hello") for at in range(2)],
    "10 values of 5 bytes": [(at, TIME, None, b"hello") for at in range(10)],
    "1,000 values of 100 bytes": [(at, TIME, None, b"v" * 100) for at in range(1000)],
    "1,000 values of 1,024 bytes, keys of 100, over 16 s": [
        (at, TIME + 16 * at, b"k" * 100, b"v" * 1024) for at in range(1000)
    ],
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_sizes(name: str, tmp_path: Path, cli: Cli) -> None:
    formats = cost_of(SCENARIOS[name], tmp_path / "t-0", cli)
    old, new, draft = (total(formats[one]) for one in FORMATS)
    changes = [f"{100 * (after / before - 1):+.1f}%" for before, after in ((old, new), (new, draft))]
    assert rows_of("Whole batches")[name] == [f"{old:,}", f"{new:,}", f"{draft:,}", *changes]


def test_overhead_of_the_example_of_kip_98(tmp_path: Path, cli: Cli) -> None:
    """KIP-98 counts 7 bytes per record, KIP-931 saves one of them, and 10 of 53 of a batch."""
    # The first records: deltas of offsets take a byte, those of timestamps two.
    records = [(at, TIME + (at and 200 + at), b"k" * 100, b"v" * 1024) for at in range(50)]
    formats = cost_of(records, tmp_path / "t-0", cli)
    new, draft = (formats[name]["records"] for name in ("magic_2", "kip_931"))
    # The first record's timestamp delta takes one byte only.
    overheads = [(sum(one.values()) - one["keys"] - one["values"] + 1) / 50 for one in (new, draft)]
    assert overheads == [11, 10]
    sixteen_seconds: list[Record] = [(0, TIME, None, b""), (999, TIME + 16_000, None, b"")]
    formats = cost_of(sixteen_seconds, tmp_path / "b-0", cli)
    heads = [sum(formats[name]["batches"].values()) for name in ("magic_2", "kip_931")]
    assert heads == [61, 61 - 2 - 5 - 2]
    rows = rows_of("Shares")
    assert rows["KIP-98: overhead of a record"][1] == "11 bytes"
    assert rows["KIP-931: saved of it"][1] == f"1 of 11, {100 / 11:.1f}%"
    assert rows["KIP-931: saved of a batch header"][1] == f"9 of 61, {900 / 61:.1f}%"
