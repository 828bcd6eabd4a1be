"""A real HDFS: Hadoop's MiniDFSCluster, a name node and a data node in one process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

HOME = Path(__file__).parents[2] / "target" / "hdfs"


@contextmanager
def hdfs_cluster(directory: Path, logs: Iterable[Path]) -> Iterator[dict[str, str]]:
    """Runs a cluster that keeps its data in `directory`, with local directories `logs` below `/logs`.

    Yields its URLs by their scheme, without a slash at the end.
    """
    # Jersey 1 makes classes; Hadoop's own scripts have the same option.
    java = ["java", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-Xmx512m", "-XX:TieredStopAtLevel=1"]
    command = [
        *java,
        "-cp",
        f"{HOME}/classes:{HOME}/lib/*",
        "Cluster",
        str(directory / "data"),
        *map(str, logs),
    ]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            ports = process.stdout.readline().split()
            assert ports, (directory / "log").read_text()[-4000:]
            schemes = ("webhdfs", "hdfs")
            yield {
                scheme: f"{scheme}://127.0.0.1:{port}" for scheme, port in zip(schemes, ports, strict=True)
            }
        finally:
            process.kill()
