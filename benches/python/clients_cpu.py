"""The CPU time of whole clients for each record: the example client and others.

Records of 112 bytes (a key of 11, a value of 101) are produced idempotently to one partition of a real
broker, in batches of up to 256 KiB, and then consumed, with each key and value taken. Each client runs in a
process of its own, whose CPU time (user and system, all threads, without the start) counts; not the broker's.
Publishes figures of the part `Clients`, and writes the tables of docs/embedding.md and docs/dropins.md from
them:

    .venv/bin/python benches/python/clients_cpu.py [--turns 3] [--records 400000] [--page]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import broker
import machine
import report
from client_tables import CODECS, Costs, figures_of, write_pages
from figures import Figures
from sets import PROJECT

sys.path.append(str(PROJECT / "examples"))

from asyncio_client import Client
from asyncio_client.connection import VERSIONS
from client_loops import CLIENTS, MANY, Job, send_batch

VERSIONS["CreateTopics"] = (4, 7)
VERSIONS["DeleteTopics"] = (4, 5)
PAGE = PROJECT / "docs" / "benchmarks.md"
PACKAGES = ("confluent-kafka", "aiokafka", "kafka-python", "kafkarrow")


def measure_one(bootstrap: str, client: str, codec: str, count: int) -> dict[str, float]:
    """In a process of its own: the microseconds for each record."""
    measured = CLIENTS[client]
    if measured.dropin:
        import_module(f"magicbyte.compat.{measured.dropin}").install()
    job = Job(bootstrap, f"clients-{time.time_ns()}", codec, count)

    async def administer(api: str, body: dict[str, Any]) -> None:
        async with Client(bootstrap) as admin:
            await (await admin.coordinator(None)).send(api, body)

    async def run() -> None:
        wanted = {"name": job.topic, "numPartitions": 1, "replicationFactor": 1}
        await administer("CreateTopics", {"topics": [wanted], "timeoutMs": 10_000})
        await asyncio.sleep(0.5)
        await (measured.produce or send_batch)(job)
        await measured.consume(job)
        await administer("DeleteTopics", {"topicNames": [job.topic], "timeoutMs": 10_000})

    asyncio.run(run())
    return {work: cost for work, cost in job.costs.items() if work == "consume" or measured.produce}


def measure_all(bootstrap: str, turns: int, count: int) -> Costs:
    """The clients take turns, so that all of them have the machine's good and bad moments."""
    costs: Costs = {}
    for turn in range(turns):
        for codec in CODECS:
            for client, measured in CLIENTS.items():
                if not measured.takes(codec):
                    continue
                records = count // measured.share // MANY * MANY
                command = [sys.executable, __file__, "--one", bootstrap, client, codec, str(records)]
                run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                for work, cost in json.loads(run.stdout.splitlines()[-1]).items():
                    costs.setdefault((client, work, codec), []).append(cost)
            print(f"turn {turn + 1}, {codec}", file=sys.stderr, flush=True)
    return costs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--page", action="store_true", help="only write the tables")
    parser.add_argument("--one", nargs=4)
    given = parser.parse_args()
    if given.one:
        bootstrap, client, codec, count = given.one
        print(json.dumps(measure_one(bootstrap, client, codec, int(count))))
        return
    if not given.page:
        publish(given.turns, given.records)
    write_pages(Figures.load(PAGE.with_suffix(".json")))


def publish(turns: int, records: int) -> None:
    """Measures all clients, and adds their figures to the record book."""
    run = report.now()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory, broker.running(Path(directory)) as node:
        costs = measure_all(node.bootstrap_servers, turns, records)
    facts = [
        machine.cpu(),
        f"`clients_cpu.py`, {', '.join(machine.installed(name) for name in PACKAGES)}, "
        f"load average {before:.1f} to {os.getloadavg()[0]:.1f}",
    ]
    report.publish(PAGE, run, list(figures_of(costs)), facts)


if __name__ == "__main__":
    main()
