"""Forged batches with valid checksums under compact and redact: the sums hold, and the output is valid."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte.errors import JobError
from magicbyte.jobs.clean import CleanReport
from magicbyte.jobs.compact import compact_partitions
from magicbyte.jobs.redact import redact_partitions
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.compact import CompactOptions
from magicbyte.options.redact import RedactOptions
from wire import sealed

CORPUS = Path(__file__).parent.parent / "corpus"
SOURCES = [
    "v2_compacted_txn",
    "v2_tombstones",
    "mixed_012",
    "v1_compacted_codecs",
    "v2_idempotent",
    "v2_gzip",
]
COMPACT = CompactOptions(now=1_800_000_000_000, all=True, all_topics=True, memory_bytes=1 << 20)
WAYS = [RedactOptions(where="offset % 5 = 1", tombstones=tombstones) for tombstones in (False, True)]


def forged(data: bytes, rng: random.Random) -> bytes:
    """Changes some bytes of some batches and corrects the checksum."""
    out = []
    for batch in magicbyte.read_batches(data):
        raw = bytearray(batch.to_bytes())
        if rng.random() < 0.3:
            for _ in range(rng.choice([1, 1, 2, 5])):
                # Mostly offsets and lengths, now and then any byte.
                at = rng.randrange(len(raw)) if rng.random() < 0.5 else rng.randrange(min(70, len(raw)))
                raw[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, raw[at] ^ 1 << rng.randrange(8)])
        out.append(sealed(bytes(raw)))
    return b"".join(out)


def sound(out: Path) -> None:
    """Every byte written belongs to a good batch, and the offsets are in order."""
    for directory in out.iterdir():
        if directory.is_dir():
            report = magicbyte.PartitionLog(directory).verify()
            assert report.balanced
            assert report.quarantined_bytes == 0


@pytest.mark.parametrize("block", range(4))
def test_forged_logs(block: int, tmp_path: Path) -> None:
    quarantined = 0
    refused: list[str] = []
    for seed in range(block * 25, block * 25 + 25):
        rng = random.Random(seed)
        name = rng.choice(SOURCES)
        source = tmp_path / f"{seed}" / "t-0"
        source.mkdir(parents=True)
        for log in sorted((KAFKA / name).glob("*.log")):
            (source / log.name).write_bytes(forged(log.read_bytes(), rng))
        tombstones = rng.random() < 0.5
        jobs: list[Callable[[str], CleanReport]] = [
            lambda out, source=source: compact_partitions([str(source)], out, LocalEngine(1), COMPACT),
            lambda out, source=source, way=WAYS[tombstones]: redact_partitions(
                [str(source)], out, LocalEngine(1), way
            ),
        ]
        for number, job in enumerate(jobs):
            out = tmp_path / f"{seed}-{number}"
            try:
                report = job(str(out))
            except (magicbyte.Error, JobError) as error:
                # Overlapping offsets that only the whole log reveals: then nothing is written.
                refused.append(str(error))
                assert not out.exists()
                continue
            assert report["balanced"], seed
            sound(out)
            quarantined += report["total"]["quarantined_bytes"] > 0
    assert quarantined > 10
    assert len(refused) < 3, refused


def test_every_case_of_the_corpus(tmp_path: Path) -> None:
    """Each case's bytes as a segment of their own; a log of such segments overlaps and is damaged."""
    number = 0
    for path in sorted(CORPUS.glob("*.jsonl")):
        source = tmp_path / "in" / f"{path.stem}-0"
        source.mkdir(parents=True)
        for line in path.read_text().splitlines():
            data = bytes.fromhex(json.loads(line).get("hex", ""))
            if data:
                (source / f"{number * 1000:020}.log").write_bytes(data)
                number += 1
    report = compact_partitions([str(tmp_path / "in")], str(tmp_path / "out"), LocalEngine(2), COMPACT)
    assert report["balanced"]
    sound(tmp_path / "out")
