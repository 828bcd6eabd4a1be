"""`redact --dry-run` counts the records that a redaction removes, and writes nothing."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, PARTITIONS, Cli
from magicbyte import RecordsBuilder
from magicbyte.errors import Error, JobError, RefusedError
from magicbyte.jobs.redact import redact_partitions
from magicbyte.jobs.redact_preview import RedactionPreview, preview_redaction
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.redact import RedactOptions

NOW = 1_700_000_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two partitions of two segments."""
    rng = random.Random(3)
    for partition in range(2):
        directory = tmp_path / "in" / f"t-{partition}"
        directory.mkdir(parents=True)
        for base in (0, 500):
            data = b""
            for start in range(base, base + 500, 50):
                builder = RecordsBuilder(2, rng.randrange(5))
                for at in range(start, start + 50):
                    builder.append(at, NOW, b"k%d" % (at % 10), b"v%d" % at)
                data += builder.build()
            (directory / f"{base:020}.log").write_bytes(data)
    return tmp_path / "in"


def previewed(source: Path, **options: Any) -> RedactionPreview:
    return preview_redaction([str(source)], LocalEngine(2), RedactOptions(**options))


WAYS: list[dict[str, Any]] = [
    {"keys": [b"k3", b"nobody", b"k3", b"k4", b"none"]},
    {"where": "value LIKE '%77%'"},
    {"keys": [b"k3"], "where": "offset >= 990"},
    {"where": "false"},
]


@pytest.mark.parametrize("way", WAYS)
def test_it_counts_what_is_redacted(way: dict[str, Any], source: Path, tmp_path: Path) -> None:
    found = previewed(source, **way)
    assert os.listdir(tmp_path) == ["in"]
    report = redact_partitions([str(source)], str(tmp_path / "out"), LocalEngine(2), RedactOptions(**way))
    assert found["redacted"] == report["counts"]["redacted"]
    assert found["unmatched_keys"] == report["unmatched_keys"]
    for one, written in zip(found["partitions"], report["written"], strict=True):
        assert (one["topic"], one["partition"]) == (written["topic"], written["partition"])
        assert one["redacted"] == written["counts"]["redacted"]
        offsets = [at for part in written["redacted"] for a, b in part["ranges"] for at in range(a, b + 1)]
        assert one["first_offsets"] == offsets[:10]
        assert one["records"] == 1000


@pytest.mark.parametrize("name", PARTITIONS)
def test_logs_of_brokers(name: str, tmp_path: Path) -> None:
    """Transactions, old formats, damage, segments that overlap."""
    options = RedactOptions(where="offset % 3 = 0")
    found = preview_redaction([str(KAFKA / name)], LocalEngine(1), options)
    report = redact_partitions([str(KAFKA / name)], str(tmp_path / "out"), LocalEngine(1), options)
    assert found["redacted"] == report["counts"]["redacted"]
    assert found["total"]["announced"] == report["total"]["announced"]
    assert found["total"]["balanced"]


def test_the_command(source: Path, tmp_path: Path, cli: Cli) -> None:
    arguments = ("redact", "--dry-run", "--engine", "local", "--where", "offset % 50 = 7")
    printed = cli(*arguments, source)
    assert "would be redacted" in printed
    assert "7, 57, 107, 157, 207, 257, 307, 357, 407, 457, ..." in printed
    assert os.listdir(tmp_path) == ["in"]
    preview = cli.json(*arguments, "--key", "nobody", source, code=1)
    assert preview["redacted"] == 40
    assert preview["unmatched_keys"] == [[0, 0]]
    assert "nobody" not in str(preview)
    assert "--key number 1" in cli("redact", "--dry-run", "--key", "x", source, code=1)
    cli("redact", "--dry-run", source, code=2)
    assert "nothing is selected" in cli.error
    assert os.listdir(tmp_path) == ["in"]


def test_failures(source: Path) -> None:
    with pytest.raises(JobError, match=r"t-0/0{20}\.log, the record with offset 0: Conversion Error"):
        previewed(source, where="CAST(value AS INTEGER) = 1")
    with pytest.raises(RefusedError, match="where: nothing: no such column"):
        previewed(source, where="nothing = 1")
    path = source / "t-1" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert previewed(source, where="true")["redacted"] == 1950
    assert previewed(source, where="true")["total"]["problems"] == 1
    with pytest.raises(Error):
        previewed(source, where="true", mode="FAILFAST")
