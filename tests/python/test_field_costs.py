"""`magicbyte stats --fields`: sums of bytes by field that agree with the account, with any engine, chunks and
damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS, Cli
from magicbyte import _core, lab
from magicbyte.jobs.field_costs import field_costs
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = Path(__file__).parents[2] / "samples"
FORMATS = ["magic_0", "magic_1", "magic_2", "kip_931"]


def total_of(cost: dict[str, dict[str, int]]) -> int:
    return sum(cost["batches"].values()) + sum(cost["records"].values())


def write(directory: Path, *batches: bytes) -> None:
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))


def batch(offset: int, value: bytes, **options: Any) -> bytes:
    builder = magicbyte.RecordsBuilder(**options)
    builder.append(offset, 1_700_000_000_000, b"key", value)
    return bytes(builder.build())


def test_the_costs_are_those_of_all_good_batches(cli: Cli) -> None:
    verified = cli.json("verify", KAFKA, code=1)["total"]
    report = cli.json("stats", "--fields", KAFKA, code=1)
    assert report["account"] == verified
    assert report["balanced"]
    total = report["total"]
    assert total["stored"] == verified["good_bytes"]
    assert total["records"] == verified["announced"]
    assert list(total["formats"]) == FORMATS
    assert total["decompressed"]["records"]["padding"] == 0
    for parts in (report["topics"].values(), (one["cost"] for one in report["partitions"])):
        costs = list(parts)
        for field in ("batches", "records", "headers", "stored"):
            assert sum(one[field] for one in costs) == total[field]
        for format in FORMATS:
            assert sum(total_of(one["formats"][format]) for one in costs) == total_of(
                total["formats"][format]
            )


@pytest.mark.parametrize("name", PARTITIONS)
def test_content_is_that_of_the_records(name: str, cli: Cli) -> None:
    report = cli.json("stats", "--fields", KAFKA / name, code=None)
    sums = dict.fromkeys(("keys", "values", "header_keys", "header_values"), 0)
    records = 0
    for one in magicbyte.PartitionLog(KAFKA / name).batches():
        for record in one:
            records += 1
            sums["keys"] += len(record.key or b"")
            sums["values"] += len(record.value or b"")
            sums["header_keys"] += sum(len(key.encode()) for key, _ in record.headers)
            sums["header_values"] += sum(len(value or b"") for _, value in record.headers)
    found = report["total"]["decompressed"]["records"]
    assert report["total"]["records"] == records
    assert {field: found[field] for field in sums} == sums


def test_damage_is_left_out_and_named(tmp_path: Path, cli: Cli) -> None:
    bad = bytearray(batch(1, b"x" * 100))
    bad[-1] ^= 1
    good = batch(0, b"first"), batch(2, b"third")
    write(tmp_path / "logs/t-0", good[0], bytes(bad), good[1])
    report = cli.json("stats", "--fields", tmp_path / "logs", code=1)
    assert report["total"]["stored"] == len(good[0]) + len(good[1])
    assert report["total"]["records"] == 2
    assert report["account"]["quarantined_bytes"] == len(bad)
    assert [one["kind"] for one in report["problems"]] == ["crc_mismatch"]
    assert "crc_mismatch" in cli("stats", "--fields", tmp_path / "logs", code=1)


def test_codecs_differ_in_stored_bytes_alone(tmp_path: Path, cli: Cli) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        compression = magicbyte.Compression[codec.upper()]
        write(tmp_path / codec / "t-0", batch(0, b"v" * 1000, compression=compression))
    reports = {codec.name: cli.json("stats", "--fields", codec)["total"] for codec in tmp_path.iterdir()}
    assert len({one["stored"] for one in reports.values()}) > 3
    assert all(one["decompressed"] == reports["none"]["decompressed"] for one in reports.values())
    assert reports["none"]["stored"] == total_of(reports["none"]["decompressed"])
    # A message set has a wrapper if it is compressed.
    wrapper = total_of(reports["gzip"]["formats"]["magic_1"]) - total_of(
        reports["none"]["formats"]["magic_1"]
    )
    assert wrapper == 8 + 4 + 4 + 1 + 1 + 8 + 4 + 4


def test_the_table(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path / "logs/orders-0", batch(0, b"12345"), batch(1, b"12345"))
    printed = cli("stats", "--fields", tmp_path / "logs")
    rows = {line.split("  ")[0].strip(): line.split() for line in printed.splitlines() if line.strip()}
    assert rows["batch headers"][2:] == ["122", "80.3%", "61.0", "0", "0", "122", rows["batch headers"][-1]]
    assert rows["values"][1:4] == ["10", "6.6%", "5.0"]
    assert "header keys" not in rows
    assert "orders" in rows


def test_chunks_add_up(tmp_path: Path) -> None:
    write(tmp_path / "t-0", *(batch(offset, b"v" * offset) for offset in range(50)))
    listing = _core.list_partition(tmp_path / "t-0")
    surveys = [_core.survey_segment(json.dumps(one)) for one in json.loads(listing)["segments"]]
    reports = []
    for chunk_bytes in (1, 1 << 30):
        plan = json.loads(_core.plan_partition(listing, surveys, chunk_bytes=chunk_bytes))
        reports.append(_core.cost_report([_core.chunk_cost(json.dumps(one)) for one in plan["chunks"]]))
    assert reports[0] == reports[1]


@pytest.mark.spark
def test_spark_finds_the_same(spark: SparkSession) -> None:
    assert field_costs([str(KAFKA)], SparkEngine(spark)) == field_costs([str(KAFKA)], LocalEngine(2))


def test_of_bytes(cli: Cli) -> None:
    for partition in sorted(SAMPLES.iterdir()):
        batches = [batch.to_bytes() for batch in magicbyte.PartitionLog(partition).batches()]
        whole = lab.cost(b"".join(batches))
        assert whole == cli.json("stats", "--fields", partition)["total"]
        table = pa.Table.from_pylist([lab.cost(batch) for batch in batches])
        assert sum(table["stored"].to_pylist()) == whole["stored"]
        values = table.flatten()["decompressed.records"].to_pylist()
        assert sum(one["values"] for one in values) == whole["decompressed"]["records"]["values"]


def test_of_damaged_bytes() -> None:
    data = batch(0, b"12345")
    assert lab.cost(b"")["batches"] == 0
    with pytest.raises(magicbyte.Error, match="46 more bytes"):
        lab.cost(data + data[:30])
    with pytest.raises(magicbyte.Error) as caught:
        lab.cost(data + data[:-2] + b"\x7f\x7f")
    assert caught.value.position is not None
    assert caught.value.record_index == 0


def test_nothing_to_read(tmp_path: Path, cli: Cli) -> None:
    cli("stats", "--fields", tmp_path, code=2)
    (tmp_path / "t-0").mkdir()
    (tmp_path / f"t-0/{0:020}.log").touch()
    report = cli.json("stats", "--fields", tmp_path)
    assert report["total"]["records"] == 0
    assert "total" in cli("stats", "--fields", tmp_path)
