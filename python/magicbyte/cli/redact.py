"""`magicbyte redact`"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import BinaryIO

import click

import magicbyte
from magicbyte.cli import expressions, options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.flags import flags
from magicbyte.cli.key_file import read_keys
from magicbyte.cli.overview import View
from magicbyte.cli.terminal import print_line
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.offset_ranges import Ranges, parse_offsets
from magicbyte.options.declare import Options, option
from magicbyte.options.redact import RedactOptions
from magicbyte.options.values import OneOf, Repeated

__all__ = ["redact"]

_KEYS_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class _Keys(Options):
    """Keys on the command line, and the format of all keys."""

    keys: tuple[str, ...] = option(
        "Redact records with this key.", default=(), flag="--key", kind=Repeated("KEY")
    )
    key_format: str = option(
        "The format of the keys in --key and --key-file.",
        default="utf-8",
        kind=OneOf({name: name for name in options.BYTE_FORMATS}),
    )


@click.command(short_help="Remove records that must be forgotten.", epilog=expressions.HELP)
@partition_choice.sources_and_out
@partition_choice.choice(prefer=True)
@click.option(
    "--key-file",
    type=click.File("rb"),
    metavar="FILE",
    help="Redact records with a key in this file: UTF-8, one key per line. Empty lines are ignored.",
)
@click.option(
    "--offsets",
    type=click.File("rb"),
    metavar="FILE",
    help="Redact the records at the offsets in this file, which `audit --offsets-out` writes.",
)
@flags(_Keys, "keys")
@flags(RedactOptions, "given")
@flags(EngineChoice, "engine")
@flags(View, "view")
def redact(
    sources: tuple[str, ...],
    out: str | None,
    choice: PartitionChoice,
    keys: _Keys,
    key_file: BinaryIO | None,
    offsets: BinaryIO | None,
    given: RedactOptions,
    view: View,
    engine: EngineChoice,
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
    magicbyte redact --offsets found.json /backup/kafka-logs out/
    magicbyte redact --where "TRY(value ->> '$.user.id') = '4711'" /backup/kafka-logs out/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.jobs.run.progress import terminal_progress

    def parse(key: str) -> bytes:
        return options.key_bytes(key, keys.key_format)

    lines = read_keys(key_file, parse) if key_file else []
    chosen = [*map(parse, keys.keys), *(key for _, key in lines)]
    settings = replace(given, keys=chosen, offsets=_ranges_of(offsets))
    with engine.open(f"magicbyte redact {sources[0]}") as runner:
        if out is None:
            from magicbyte.jobs.redact_preview import preview_redaction

            preview = preview_redaction(sources, runner, settings, terminal_progress(), choice=choice)
        else:
            report = magicbyte.redact(
                sources, out, choice=choice, engine=runner, progress=terminal_progress(), **vars(settings)
            )
    if out is None:
        runs, code = preview["unmatched_keys"], reports.print_preview(preview, as_json=view.as_json)
    else:
        runs = report["unmatched_keys"]
        code = accounts.print_written(report, out, reports.print_clean, view, certified=given.certify)
    unmatched = [range(first, last + 1) for first, last in runs]
    if not unmatched:
        return code
    if not view.as_json:
        count = sum(map(len, unmatched))
        names = [
            f"--key number {place + 1}"
            if place < len(keys.keys)
            else f"line {lines[place - len(keys.keys)][0]} of {key_file.name if key_file else ''}"
            for place in islice(chain.from_iterable(unmatched), _KEYS_SHOWN)
        ]
        more = ", ..." if count > _KEYS_SHOWN else ""
        print_line(f"{count:,} of the keys are in no record: {', '.join(names)}{more}")
    return PROBLEMS if code == CLEAN else code


def _ranges_of(file: BinaryIO | None) -> Mapping[tuple[str, int], Ranges] | None:
    if file is None:
        return None
    try:
        return parse_offsets(file.read().decode())
    except (UnicodeDecodeError, RefusedError) as error:
        raise click.UsageError(f"{file.name}: {error}") from None
