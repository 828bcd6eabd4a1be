"""`magicbyte stats`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from magicbyte.cli import options

if TYPE_CHECKING:
    from magicbyte.jobs.stats import Stats

__all__ = ["stats"]


@click.command()
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True))
@options.max_decompressed_bytes
@options.threads
@options.as_json
def stats(sources: tuple[str, ...], max_decompressed_bytes: int, threads: int | None, as_json: bool) -> int:
    """Count batches, records and bytes of each partition at and below SRC, and say what they are.

    Per partition and in total: batches, records, sizes on disk and after decompression, codecs, magics
    (0 and 1: Kafka before 0.11), ranges of offsets and times.

    \b
    magicbyte stats /backup/kafka-logs
    magicbyte stats --json /backup/kafka-logs | jq .total
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.jobs.engines import LocalEngine
    from magicbyte.jobs.progress import terminal_progress
    from magicbyte.jobs.stats import statistics

    found = statistics(
        sources,
        LocalEngine(threads),
        max_decompressed_bytes=max_decompressed_bytes,
        progress=terminal_progress(),
    )
    if as_json:
        report.print_json(found)
    else:
        rows = [
            [f"{one['topic']}-{one['partition']}", *_cells(one), one["first_offset"], one["last_offset"]]
            for one in found["partitions"]
        ]
        rows.append(["total", *_cells(found["total"]), None, None])
        report.print_table(["partition", *_COLUMNS, "first offset", "last offset"], rows)
    return report.exit_code(balanced=found["balanced"], problems=found["total"]["problems"])


_COLUMNS = (
    "segments",
    "bytes",
    "uncompressed",
    "batches",
    "records",
    "control",
    "codecs",
    "magics",
    "first time",
    "last time",
    "problems",
)


def _cells(one: Stats) -> list[Any]:
    from magicbyte.cli.report import time_text

    return [
        one["segments"],
        one["size"],
        one["uncompressed_size"],
        one["batches"],
        one["records"],
        one["control_records"],
        _counts(one["codecs"]),
        _counts(one["magics"]),
        time_text(one["min_timestamp"]),
        time_text(one["max_timestamp"]),
        one["problems"],
    ]


def _counts(counts: dict[str, int]) -> str:
    return " ".join(f"{name}:{count:,}" for name, count in counts.items()) or "-"
