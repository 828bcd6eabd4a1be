"""The topic that both sides read: produced once through a broker, its segments copied for magicbyte."""

import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import broker
import sets

DIRECTORY = sets.DATA / "spark"
BROKER = DIRECTORY / "broker"
LOG = DIRECTORY / "log"
"""What magicbyte reads: a copy of the topic's directories of the broker's log."""
NAME = "orders"
PARTITIONS = 2


@dataclass(frozen=True)
class Topic:
    records: int
    size: int
    """Bytes of the segments."""


def prepare(records: int) -> Topic:
    """Creates the topic unless it exists with this number of records."""
    sets.compile_java()
    manifest = DIRECTORY / "manifest.json"
    if manifest.exists():
        topic = Topic(**json.loads(manifest.read_text()))
        if topic.records == records:
            return topic
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    with broker.running(BROKER) as node:
        arguments = [node.bootstrap_servers, NAME, str(PARTITIONS), str(records)]
        subprocess.run([*sets.JAVA, "bench.Produce", *arguments], check=True)
    # A broker has written everything, and trimmed its indexes, only after it has shut down.
    for partition in range(PARTITIONS):
        shutil.copytree(BROKER / "logs" / f"{NAME}-{partition}", LOG / f"{NAME}-{partition}")
    topic = Topic(records, sum(file.stat().st_size for file in LOG.rglob("*.log")))
    manifest.write_text(json.dumps(asdict(topic)))
    return topic


def batches() -> int:
    """The number of batches that the producer made."""
    from magicbyte import PartitionLog

    logs = [PartitionLog(path) for path in sorted(Path(LOG).iterdir())]
    return sum(1 for log in logs for _ in log.batches())
