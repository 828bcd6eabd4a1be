"""Options with invalid values: exit code 2 and an explanation, before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import KAFKA, Cli

SOURCE = str(KAFKA / "v2_txn")
HUGE = "9" * 5000
OFFSETS = (HUGE, str(1 << 63), "-1", "1.5", "")
TIMES = (HUGE, str(1 << 63), str(-(1 << 63)), "yesterday", "")
SIZES = (HUGE, f"{1 << 40}g", "-1", "1e3", "1t", "")
NUMBERS = {
    ("records",): {
        "--start-offset": OFFSETS,
        "--end-offset": OFFSETS,
        "--max-records": OFFSETS,
        "--start-timestamp": TIMES,
        "--end-timestamp": TIMES,
        "--max-decompressed-bytes": SIZES,
    },
    ("dump",): {"--max-records": OFFSETS, "--max-decompressed-bytes": SIZES},
    ("verify",): {"--max-decompressed-bytes": SIZES},
    ("stats",): {"--max-decompressed-bytes": SIZES},
    ("rescue",): {"--max-decompressed-bytes": SIZES},
    ("explain",): {
        "--now": TIMES,
        "--transaction-max-timeout-ms": OFFSETS,
        "--max-listed": ("0", "-1", "many"),
    },
    ("convert",): {
        "--segment-bytes": (*SIZES, str(1 << 31)),
        "--batch-bytes": SIZES,
        "--leader-epoch": (HUGE, str(1 << 31), "-2"),
    },
    ("compact",): {
        "--until-offset": OFFSETS,
        "--min-compaction-lag-ms": OFFSETS,
        "--delete-retention-ms": OFFSETS,
        "--producer-id-expiration-ms": (*OFFSETS, "0"),
        "--now": TIMES,
        "--segment-bytes": (*SIZES, str(1 << 31)),
        "--memory-bytes": SIZES,
    },
}
CASES = [
    (command, option, value)
    for command, options in NUMBERS.items()
    for option, values in options.items()
    for value in values
]


@pytest.mark.parametrize(
    ("command", "option", "value"), CASES, ids=[f"{c[0]} {o}={v[:25]}" for c, o, v in CASES]
)
def test_numbers_out_of_range(
    cli: Cli, tmp_path: Path, command: tuple[str, ...], option: str, value: str
) -> None:
    out = [tmp_path / "out"] if command[0] in ("convert", "compact") else []
    assert cli(*command, f"{option}={value}", SOURCE, *out, code=2) == ""
    assert f"Invalid value for '{option}'" in cli.error
    assert list(tmp_path.iterdir()) == []


LARGEST = {
    ("records",): {"--start-offset": (1 << 63) - 1, "--start-timestamp": (1 << 63) - 1},
    ("dump", "--no-records"): {"--max-records": 1 << 62, "--max-decompressed-bytes": (1 << 32) - 1},
    ("verify",): {"--max-decompressed-bytes": (1 << 32) - 1},
    ("explain",): {"--now": (1 << 63) - 1, "--transaction-max-timeout-ms": 1 << 62},
    ("compact",): {
        "--until-offset": (1 << 63) - 1,
        "--min-compaction-lag-ms": 1 << 62,
        "--delete-retention-ms": 1 << 62,
        "--producer-id-expiration-ms": 1 << 62,
        "--memory-bytes": 1 << 62,
        "--segment-bytes": (1 << 31) - 1,
    },
}


@pytest.mark.parametrize("command", LARGEST, ids=" ".join)
@pytest.mark.parametrize("now", [-(1 << 62), (1 << 63) - 1])
def test_the_largest_numbers(cli: Cli, tmp_path: Path, command: tuple[str, ...], now: int) -> None:
    numbers = dict(LARGEST[command])
    if command[0] in ("explain", "compact"):
        numbers["--now"] = now
    out = [tmp_path / "out"] if command[0] == "compact" else []
    cli(*command, *(f"{option}={value}" for option, value in numbers.items()), SOURCE, *out, code=None)
    assert cli.code in (0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compression", "gzip", "--level", "10"], "level 10 is not supported for gzip"),
        (["--compression", "none", "--level", "1"], "level 1 is not supported for none"),
        (["--compression", "zstd", "--magic", "1"], "zstd needs magic 2"),
        (["--topic-id", "v2_txn=x"], "'x' is not a topic id"),
    ],
)
def test_what_no_batch_can_have(cli: Cli, tmp_path: Path, options: list[str], message: str) -> None:
    cli("convert", *options, SOURCE, tmp_path / "out", code=2)
    assert message in cli.error
    assert list(tmp_path.iterdir()) == []
