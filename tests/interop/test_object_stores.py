"""Logs in a real S3 server (SeaweedFS), also through a proxy that fails in every way that servers and networks do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import magicbyte
import obstore
import pyarrow as pa
import pytest
from flaky_proxy import flaky_proxy
from magicbyte import PartitionLog, mount_storage
from magicbyte.cli import main
from s3_server import BUCKET, OPTIONS, SECRET, client, put_directory

pytestmark = pytest.mark.interop


def sums(source: object) -> tuple[Any, list[Any]]:
    report = magicbyte.verify(str(source))
    left_out = ("path", "segments", "ignored")
    return report["total"], [{k: one[k] for k in one if k not in left_out} for one in report["partitions"]]


def test_the_sums_of_the_directory(s3: str, logs: str, kafka: Path, tmp_path: Path) -> None:
    mount_storage(logs, {**OPTIONS, "endpoint": s3})
    assert sums(logs) == sums(kafka)
    assert sums(f"s3://{BUCKET}/all.tar") == sums(kafka)
    for name in ("v2_txn", "v1_compacted_codecs"):
        stored = pa.table(PartitionLog(f"{logs}/{name}").to_arrow(isolation_level="read_committed"))
        assert stored == pa.table(PartitionLog(kafka / name).to_arrow(isolation_level="read_committed"))
    options = [f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": s3}.items()]
    assert main(["ingest", *options, f"{logs}/v2_zstd", str(tmp_path / "tables")]) == 0
    written = "".join(path.read_text() for path in (tmp_path / "tables").rglob("*.json"))
    assert logs in written
    assert SECRET not in written


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"secret_access_key": "wrongsecret"}, "SignatureDoesNotMatch"),
        ({"access_key_id": "nobodyatall"}, "InvalidAccessKeyId"),
    ],
)
def test_wrong_credentials(s3: str, logs: str, wrong: dict[str, str], expected: str, capsys: Any) -> None:
    options = [
        f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": s3, **wrong}.items()
    ]
    assert main(["verify", *options, logs]) == 3
    output, error = capsys.readouterr()
    assert expected in error
    assert error.count("\n") == 1
    assert not any(secret in output + error for secret in (SECRET, *wrong.values()))


def test_a_missing_bucket(s3: str, capsys: Any) -> None:
    options = [f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": s3}.items()]
    assert main(["verify", *options, "s3://no-such-bucket/logs"]) == 3
    assert "NoSuchBucket" in capsys.readouterr().err


def test_many_objects(s3: str, kafka: Path) -> None:
    """More than two pages of a listing."""
    store = client(s3)
    segment = (kafka / "v2_zstd" / f"{0:020d}.log").read_bytes()
    with ThreadPoolExecutor(16) as pool:
        names = [f"many/orders-{number}/{0:020d}.log" for number in range(2200)]
        list(pool.map(lambda name: obstore.put(store, name, segment), names))
    mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": s3})
    assert len(magicbyte.Log(f"s3://{BUCKET}/many")) == 2200


def test_an_object_replaced_while_it_is_read(s3: str, kafka: Path) -> None:
    store = client(s3)
    data = (kafka / "v2_big_batch" / f"{0:020d}.log").read_bytes()
    obstore.put(store, f"replaced/orders-0/{0:020d}.log", data)
    mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": s3})
    log = PartitionLog(f"s3://{BUCKET}/replaced/orders-0", mode="PERMISSIVE")
    obstore.put(store, f"replaced/orders-0/{0:020d}.log", data[:100] + data[101:] + b"x")
    records = log.records()
    assert list(records) == []
    assert "changed since it was listed" in records.problems[0]["message"]


def test_a_flaky_network(s3: str, logs: str, kafka: Path) -> None:
    with flaky_proxy(s3, [500, 503, "reset", "truncated"]) as proxy:
        mount_storage(logs, {**OPTIONS, "endpoint": f"http://127.0.0.1:{proxy.server_port}"})
        names = ("v2_txn", "v2_gzip", "v0_lz4_large", "v2_big_batch")
        for name in names:
            # Another name, so that nothing is kept of it from before.
            copy = f"flaky/{name}"
            put_directory(s3, kafka / name, copy)
            assert sums(f"s3://{BUCKET}/{copy}") == sums(kafka / name), proxy.seen
        assert all(proxy.seen[trouble] for trouble in proxy.troubles), proxy.seen
