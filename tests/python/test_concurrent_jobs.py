"""Two jobs with the same output: the result is one job's, whole; and a job that reports success is right."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from magicbyte.errors import RefusedError
from magicbyte.jobs.write_rows import RowsOptions, commit_rows, staging_in, write_rows
from writers import ROUNDS, WRITERS, content_of, is_published, make_source, outcome, start

SECONDS = 0.2
"""A job on these sources takes about as long."""


@pytest.fixture
def sources(tmp_path: Path) -> tuple[Path, Path]:
    """The same topics with other records, and one topic in each that the other lacks."""
    one = make_source(tmp_path / "one", ("v2_none", "v1_gzip", "v2_txn"), ("a", "b", "mine"))
    other = make_source(tmp_path / "other", ("v2_zstd", "v2_none", "v0_gzip"), ("a", "b", "yours"))
    return one, other


PAIRS = [(name, name) for name in WRITERS] + [
    ("convert", "ingest"),
    ("ingest --overwrite", "compact"),
    ("rescue", "redact"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_two_jobs_with_one_output(pair: tuple[str, str], sources: tuple[Path, Path], tmp_path: Path) -> None:
    (area := tmp_path / "area").mkdir()
    alone = [outcome(name, source, tmp_path) for name, source in zip(pair, sources, strict=True)]
    dice = random.Random(18)
    for number in range(6 * ROUNDS):
        out = area / "out"
        if is_there := dice.random() < 0.3:
            out.mkdir()
        pauses = dice.choice([(0, 0), (0, dice.uniform(0, SECONDS)), (dice.uniform(0, SECONDS), 0)])
        errors = [tmp_path / "first.errors", tmp_path / "second.errors"]
        jobs = [
            start(name, source, out, error, pause)
            for name, source, error, pause in zip(pair, sources, errors, pauses, strict=True)
        ]
        for job in jobs:
            job.join()
        codes = [job.exitcode for job in jobs]
        context = number, codes, [error.read_text() for error in errors]
        # 1: done, and the damage was found.
        done = [index for index, code in enumerate(codes) if code == 1]
        assert all(code in (1, 2, 3) for code in codes), context
        if pair[0] == pair[1]:
            assert done, context
        if done:
            content = content_of(out)
            assert any(content == alone[index] for index in done), context
            assert len(done) == 1 or "--overwrite" in pair[0] + pair[1], context
        else:
            assert out.exists() == is_there, context
        for index, code in enumerate(codes):
            if code != 1:
                message = errors[index].read_text()
                assert message.startswith("magicbyte: "), context
                assert message.count("\n") == 1, context
        assert {path.name for path in area.iterdir()} <= {"out"}, context
        shutil.rmtree(out, ignore_errors=True)


def test_a_reader_never_sees_a_mixture(sources: tuple[Path, Path], tmp_path: Path) -> None:
    """If the marker of a complete output is there before and after reading, the rows are one job's."""
    out = tmp_path / "out"
    name = "ingest --overwrite"
    alone = [outcome(name, source, tmp_path) for source in sources]
    dice = random.Random(18)
    seen = set()
    for _ in range(6 * ROUNDS):
        job = start(name, sources[dice.randrange(2)], out, tmp_path / "errors", dice.uniform(0, SECONDS))
        while job.is_alive():
            content = _read(out)
            if content is not None:
                assert content in alone
                seen.add(alone.index(content))
        job.join()
        assert job.exitcode == 1, (tmp_path / "errors").read_text()
        assert content_of(out) in alone
    assert seen


def _read(out: Path) -> Any:
    """What a careful reader gets; None if there is no complete output, or it was replaced meanwhile."""
    before, failure, content = _mark(out), None, None
    try:
        content = content_of(out, with_workspace=True)
    except (OSError, AssertionError, ValueError, pa.ArrowException) as error:
        failure = error
    if before is None or before != _mark(out):
        return None
    if failure is not None:
        raise failure
    return content


def _mark(out: Path) -> tuple[int, str] | None:
    try:
        return (out / "_SUCCESS").stat().st_ino, (out / "reconciliation.json").read_text()
    except OSError:
        return None


def test_two_jobs_that_write_rows(tmp_path: Path) -> None:
    """Jobs of `df.write` may share a directory, but not a partition."""

    def job(value: bytes, *topics: str) -> tuple[str, list[Any]]:
        staging = staging_in(str(tmp_path))
        rows = pa.table({"topic": topics, "value": [value] * len(topics)}).to_batches()
        return staging, write_rows(rows, staging, RowsOptions())

    first, second, apart = job(b"1", "a", "b"), job(b"2", "b", "c"), job(b"3", "d")
    commit_rows(str(tmp_path), *second)
    with pytest.raises(RefusedError, match=r"b-0 is in .* already"):
        commit_rows(str(tmp_path), *first)
    commit_rows(str(tmp_path), *apart)
    shutil.rmtree(first[0])
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"b-0", "c-0", "d-0"}
    values = [[r.value_bytes for r in magicbyte.PartitionLog(tmp_path / f"{t}-0").records()] for t in "bcd"]
    assert values == [[b"2"], [b"2"], [b"3"]]


def test_a_lock_outlives_no_process(tmp_path: Path) -> None:
    """The workspace of a killed job blocks no other, however the job died."""
    source = make_source(tmp_path / "in", ("v2_none",), ("a",))
    (tmp_path / "area").mkdir()
    out = tmp_path / "area" / "out"
    job = start("convert", source, out, tmp_path / "errors")
    while not list((tmp_path / "area").iterdir()) and job.is_alive():
        pass
    job.kill()
    job.join()
    again = start("convert", source, out, tmp_path / "errors")
    again.join()
    assert again.exitcode == 1 or is_published(out)
    assert os.listdir(tmp_path / "area") == ["out"]
