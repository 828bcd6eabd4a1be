"""Writing partitions from Python: the bindings, a full disk, a killed writer."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import magicbyte
import pytest
from magicbyte import _core

WRITE = """
import sys
from pathlib import Path
from magicbyte import _core

source, target, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if limit:
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
print("begun", flush=True)
writer = _core.PartitionWriter(_core.begin_partition(target), segment_bytes=2000)
for log in sorted(source.glob("*.log")):
    writer.append(log.read_bytes())
_core.finish_partition(target, writer.finish())
"""


def files(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def write(source: Path, target: Path) -> None:
    # No writer is running, so leftovers of a failed one may be removed.
    shutil.rmtree(target.with_name(f".{target.name}.magicbyte-unfinished"), ignore_errors=True)
    subprocess.run([sys.executable, "-c", WRITE, str(source), str(target), "0"], check=True)


def test_a_partition_from_parts(kafka: Path, tmp_path: Path) -> None:
    target = tmp_path / "orders-0"
    directory = _core.begin_partition(target)
    assert directory.parent == tmp_path
    assert directory.name.startswith(".")
    summaries = []
    for log in sorted((kafka / "v2_txn").glob("*.log"), reverse=True):
        writer = _core.PartitionWriter(directory / log.stem, int(log.stem), index_interval_bytes=256)
        batches = list(magicbyte.read_batches(log.read_bytes()))
        assert writer.append(log.read_bytes()) == len(batches)
        assert writer.next_offset == batches[-1].next_offset
        summaries += writer.finish()
    assert not target.exists()
    assert {json.loads(summary)["base_offset"] for summary in summaries} == {0, 7, 86, 90}
    topic_id = "GzXX9iQkTMGiyJ7cQU9tvA"
    _core.finish_partition(target, summaries, topic_id=topic_id)
    written = files(target)
    assert topic_id in written.pop("partition.metadata").decode()
    written.pop("leader-epoch-checkpoint")
    assert written == {name: (kafka / "v2_txn" / name).read_bytes() for name in written}
    assert list(tmp_path.iterdir()) == [target]


def test_errors_give_cause_and_position(kafka: Path, tmp_path: Path) -> None:
    data = (kafka / "v2_none" / "00000000000000000000.log").read_bytes()
    writer = _core.PartitionWriter(tmp_path / "a", 0)
    with pytest.raises(magicbyte.CorruptRecordError, match="CRC mismatch") as damaged:
        writer.append(data[:100] + b"?" + data[101:])
    assert damaged.value.position == 0
    writer.append(data)
    with pytest.raises(magicbyte.CorruptRecordError, match="does not fit between its neighbours"):
        writer.append(data)
    writer.finish()
    with pytest.raises(ValueError, match="finished"):
        writer.append(data)
    with pytest.raises(FileExistsError):
        _core.PartitionWriter(tmp_path / "a", 0)
    with pytest.raises(FileExistsError):
        _core.begin_partition(tmp_path / "a")
    (_core.begin_partition(tmp_path / "twice") / "theirs").touch()
    with pytest.raises(ValueError, match="another writer is at work, or was killed"):
        _core.begin_partition(tmp_path / "twice")
    assert (tmp_path / ".twice.magicbyte-unfinished" / "theirs").exists()
    with pytest.raises(ValueError, match="negative"):
        _core.PartitionWriter(tmp_path / "b", -1)
    with pytest.raises(ValueError, match="2\\^31"):
        _core.PartitionWriter(tmp_path / "b", 0, segment_bytes=2**31)
    with pytest.raises(ValueError, match="invalid JSON argument"):
        _core.finish_partition(tmp_path / "c", ["{}"])


def test_a_full_disk_leaves_no_partition(kafka: Path, tmp_path: Path) -> None:
    target = tmp_path / "orders-0"
    command = [sys.executable, "-c", WRITE, str(kafka / "v2_txn"), str(target), "1000"]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode != 0
    assert "OSError" in failed.stderr
    assert ".log" in failed.stderr
    assert not target.exists()
    write(kafka / "v2_txn", target)
    write(kafka / "v2_txn", tmp_path / "undisturbed-0")
    assert files(target) == files(tmp_path / "undisturbed-0")


def test_a_writer_killed_anywhere_can_start_again(kafka: Path, tmp_path: Path) -> None:
    source = kafka / "v2_txn"
    write(source, tmp_path / "undisturbed-0")
    expected = files(tmp_path / "undisturbed-0")
    target = tmp_path / "killed-0"
    command = [sys.executable, "-c", WRITE, str(source), str(target), "0"]
    chance = random.Random(5)
    outcomes = set()
    for _ in range(12):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
        outcomes.add(target.exists())
        if target.exists():
            assert files(target) == expected
            shutil.rmtree(target)
        shutil.rmtree(tmp_path / ".killed-0.magicbyte-unfinished", ignore_errors=True)
    assert False in outcomes, "no writer was killed while working"
    write(source, target)
    assert files(target) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed-0", "undisturbed-0"]


def test_sidecars_rebuilt(kafka: Path, tmp_path: Path) -> None:
    copy = tmp_path / "orders-0"
    copy.mkdir()
    for log in (kafka / "v2_txn").glob("*.log"):
        (copy / log.name).write_bytes(log.read_bytes())
    planned = json.loads(_core.rebuild_sidecars(copy, index_interval_bytes=256, dry_run=True))
    assert len(list(copy.iterdir())) == 4, "a dry run should write nothing"
    done = json.loads(_core.rebuild_sidecars(copy, index_interval_bytes=256))
    assert planned == done
    assert {entry["change"] for entry in done} == {"created"}
    assert all((copy / entry["file"]).stat().st_size == entry["size"] for entry in done)
