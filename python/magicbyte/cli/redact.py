"""`magicbyte redact`"""

from __future__ import annotations

from itertools import chain, islice
from typing import BinaryIO

import click

from magicbyte.cli import engines, expressions, options, overview, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.key_file import read_keys
from magicbyte.cli.overview import View
from magicbyte.cli.terminal import print_line
from magicbyte.enums import DamageMode
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["redact"]

_KEYS_SHOWN = 5


@click.command(short_help="Remove records that must be forgotten.", epilog=expressions.HELP)
@partition_choice.sources_and_out
@partition_choice.options(prefer=True)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="Redact records with this key; may be repeated."
)
@click.option(
    "--key-file",
    type=click.File("rb"),
    metavar="FILE",
    help="Redact records with a key in this file: UTF-8, one key per line. Empty lines are ignored.",
)
@options.key_format("The format of the keys in --key and --key-file.")
@expressions.where("Redact records for which this SQL expression is true.")
@click.option(
    "--tombstones",
    is_flag=True,
    help="Replace records by tombstones: key, offset and timestamp are kept, value and headers are removed.",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Read the output again before it is published, to check that none of the keys is left.",
)
@options.mode
@options.topic_ids()
@overview.options
@engines.options
@options.max_decompressed_bytes
@options.as_json
def redact(
    sources: tuple[str, ...],
    out: str | None,
    choice: PartitionChoice,
    keys: tuple[str, ...],
    key_file: BinaryIO | None,
    key_format: str,
    where: str | None,
    tombstones: bool,
    check: bool,
    mode: DamageMode,
    topic_ids: dict[str, str],
    view: View,
    engine: EngineChoice,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Write every partition at and below SRC into OUT without the records that must be forgotten.

    Their bytes are nowhere in OUT. Everything else is kept: offsets, sequences, transactions, and every batch
    without such a record byte for byte. reconciliation.json lists the redacted offsets by segment, but
    neither the keys nor EXPR. SRC is only read, and must not change meanwhile. OUT may be a URL.

    With only one argument, or with --dry-run, it counts what would be redacted in each partition, shows the
    first offsets, and writes nothing.

    A key that no record has is reported by its position, never by its value, and makes the exit code 1.

    \b
    magicbyte redact --key user-4711 /backup/kafka-logs out/
    magicbyte redact --key-file users.txt --tombstones /backup/kafka-logs out/
    magicbyte redact --dry-run --where "value LIKE '%bob@example.com%'" /backup/kafka-logs
    magicbyte redact --where "TRY(value ->> '$.user.id') = '4711'" /backup/kafka-logs out/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.jobs.redact import RedactOptions, redact_partitions
    from magicbyte.jobs.run.progress import terminal_progress

    def parse(key: str) -> bytes:
        return options.key_bytes(key, key_format)

    lines = read_keys(key_file, parse) if key_file else []
    settings = RedactOptions(
        keys=[*map(parse, keys), *(key for _, key in lines)],
        where=where,
        tombstones=tombstones,
        check=check,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=topic_ids,
    )
    with engine.open(f"magicbyte redact {sources[0]}") as runner:
        if out is None:
            from magicbyte.jobs.redact_preview import preview_redaction

            preview = preview_redaction(sources, runner, settings, terminal_progress(), choice=choice)
        else:
            report = redact_partitions(sources, out, runner, settings, terminal_progress(), choice=choice)
    if out is None:
        runs, code = preview["unmatched_keys"], reports.print_preview(preview, as_json=as_json)
    else:
        runs = report["unmatched_keys"]
        code = accounts.print_written(report, out, reports.print_clean, view, as_json=as_json)
    unmatched = [range(first, last + 1) for first, last in runs]
    if not unmatched:
        return code
    if not as_json:
        count = sum(map(len, unmatched))
        names = [
            f"--key number {place + 1}"
            if place < len(keys)
            else f"line {lines[place - len(keys)][0]} of {key_file.name if key_file else ''}"
            for place in islice(chain.from_iterable(unmatched), _KEYS_SHOWN)
        ]
        more = ", ..." if count > _KEYS_SHOWN else ""
        print_line(f"{count:,} of the keys are in no record: {', '.join(names)}{more}")
    return PROBLEMS if code == CLEAN else code
