"""A real HDFS: Hadoop's MiniDFSCluster, a name node and a data node in one process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

HOME = Path(__file__).parents[2] / "target" / "hdfs"


@contextmanager
def hdfs_cluster(directory: Path, logs: Iterable[Path]) -> Iterator[str]:
    """Runs a cluster that keeps its data in `directory`, with local directories `logs` below `/logs`.

    Yields its URL, without a slash at the end.
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
            port = process.stdout.readline().strip()
            assert port, (directory / "log").read_text()[-4000:]
            yield f"hdfs://127.0.0.1:{port}"
        finally:
            process.kill()
