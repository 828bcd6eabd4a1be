"""All partitions of real brokers, in every place and packing: the same sums, and the same digests of the records."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from magicbyte import PartitionLog, mount_storage
from magicbyte.jobs.run.sums import RecordSums
from s3_server import BUCKET, OPTIONS
from web_server import web_server

pytestmark = pytest.mark.interop

COLUMNS = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]


def sums(source: str) -> tuple[Any, list[Any], RecordSums]:
    """What `verify` counts, without the places, and the digests of the records."""
    report = magicbyte.verify(source)
    left_out = ("path", "segments", "ignored")
    digests = RecordSums()
    for one in report["partitions"]:
        digests.add_rows(PartitionLog(one["path"], mode="PERMISSIVE").to_arrow(COLUMNS))
    partitions = [{k: one[k] for k in one if k not in left_out} for one in report["partitions"]]
    return report["total"], partitions, digests


@pytest.fixture(scope="module")
def expected(kafka: Path) -> tuple[Any, list[Any], RecordSums]:
    found = sums(str(kafka))
    assert found[0]["rows"] == sum(one.rows for one in found[2].values()) > 10_000
    return found


@pytest.fixture
def source(request: pytest.FixtureRequest, kafka: Path, tmp_path: Path) -> Iterator[str]:
    """The partitions in one of the forms."""
    form = request.param
    if form == "s3":
        logs = request.getfixturevalue("logs")
        mount_storage(logs, {**OPTIONS, "endpoint": request.getfixturevalue("s3")})
        yield logs
    elif form == "tar in s3":
        request.getfixturevalue("logs")
        mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": request.getfixturevalue("s3")})
        yield f"s3://{BUCKET}/all.tar"
    elif form == "http":
        with web_server(kafka) as server:
            yield f"http://127.0.0.1:{server.server_port}"
    elif form.startswith("tar"):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(kafka, arcname="kafka-logs")
        path = tmp_path / f"all.{form}"
        path.write_bytes(compressed(packed.getvalue(), form.removeprefix("tar")))
        yield str(path)
    else:
        copy = shutil.copytree(kafka, tmp_path / "copy")
        for segment in copy.rglob("*.log"):
            segment.with_name(segment.name + form).write_bytes(compressed(segment.read_bytes(), form))
            segment.unlink()
        yield str(copy)


def compressed(data: bytes, ending: str) -> bytes:
    codec = {"": None, ".zst": "zstd", ".gz": "gzip"}[ending]
    return data if codec is None else pa.compress(data, codec, asbytes=True)


@pytest.mark.parametrize(
    "source", ["s3", "tar in s3", "http", "tar", "tar.zst", "tar.gz", ".zst", ".gz"], indirect=True
)
def test_the_sums_and_digests_of_the_directory(
    source: str, expected: tuple[Any, list[Any], RecordSums]
) -> None:
    assert sums(source) == expected
