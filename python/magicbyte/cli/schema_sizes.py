"""`magicbyte schemas sizes`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.schema_source import http_settings
from magicbyte.cli.terminal import print_line, print_problem
from magicbyte.cli.typed import schema_registry as registry_options
from magicbyte.jobs.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.jobs.schema_sizes import TopicSizes

__all__ = ["sizes"]


@click.command(short_help="Compare the values of topics as Avro, Protobuf and JSON.")
@partition_choice.sources
@partition_choice.options()
@registry_options
@click.option(
    "--max-values",
    type=click.IntRange(1),
    default=50_000,
    show_default=True,
    metavar="N",
    help="The number of values of each topic to read.",
)
@options.max_decompressed_bytes
@options.as_json
def sizes(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    schema_registry: str | None,
    registry_config: str | None,
    max_values: int,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Show how many bytes the values at and below SRC take, and would take in the other formats.

    The values are decoded by the newest schema that they name, and written again as Avro, Protobuf and JSON
    with the framing of a schema registry. `zstd` is the size of batches that hold these values alone, as many
    as the topic's own batches hold. The topic's own format is measured as it is stored.

    The schemas of the other formats are derived, so their sizes are close, not exact: enums are strings,
    decimals are strings in Protobuf and JSON, times are text and bytes are base64 in JSON, and a field that
    is never null is not nullable. The sizes exclude nulls, and values that cannot be decoded.

    \b
    magicbyte schemas sizes --schema-registry /backup/kafka-logs /backup/kafka-logs
    magicbyte schemas sizes --topic orders --schema-registry https://registry:8081 /backup/kafka-logs
    magicbyte schemas sizes --json --schema-registry schemas/ logs/ | jq '.topics[].formats.avro.zstd_bytes'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports, tables
    from magicbyte.jobs.schema_sizes import schema_sizes
    from magicbyte.jobs.schemas import open_registry

    if schema_registry is None:
        raise click.UsageError("expected --schema-registry")
    _, registry = open_registry([schema_registry], http=http_settings(registry_config))
    report = schema_sizes(
        sources, registry, choice=choice, values=max_values, max_decompressed_bytes=max_decompressed_bytes
    )
    if as_json:
        reports.print_json(report)
    else:
        rows = [row for one in report["topics"] for row in _rows(one)]
        if rows:
            tables.print_table(["topic", *_COLUMNS], rows)
        for one in report["topics"]:
            if one["error"] is not None:
                print_line(f"{one['topic']}: not compared: {one['error']}")
            elif one["left_out"]:
                print_line(f"{one['topic']}: {one['left_out']} values left out, which cannot be decoded")
    for problem in report["problems"]:
        print_problem(f"magicbyte: {problem}")
    return PROBLEMS if report["problems"] else CLEAN


_COLUMNS = ("format", "values", "bytes", "per value", "zstd", "per value", "values per batch")


def _rows(one: TopicSizes) -> list[list[Any]]:
    count = one["values"]
    return [
        [
            one["topic"],
            f"{name} (stored)" if size["as_stored"] else name,
            count,
            size["bytes"],
            _each(size["bytes"], count),
            size["zstd_bytes"],
            _each(size["zstd_bytes"], count),
            _each(count, one["batches"]),
        ]
        for name, size in one["formats"].items()
    ]


def _each(size: int, count: int) -> str:
    return f"{size / count:.1f}" if count else "-"
