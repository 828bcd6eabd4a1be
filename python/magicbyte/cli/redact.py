"""`magicbyte redact`"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from itertools import chain, islice
from typing import BinaryIO

import click

from magicbyte.cli import engines, options
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.key_file import read_keys
from magicbyte.cli.terminal import print_line
from magicbyte.enums import DamageMode

__all__ = ["redact"]

_FORMATS: dict[str, Callable[[str], bytes]] = {
    "utf-8": str.encode,
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}

_SHOWN = 5


@click.command(short_help="Take out records that must be forgotten.")
@click.argument("source", metavar="SRC", type=click.Path(exists=True, file_okay=False))
@click.argument("out", metavar="OUT", type=click.Path())
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="Records with this key; may be given again."
)
@click.option(
    "--key-file",
    type=click.File("rb"),
    metavar="FILE",
    help="Records with one of the keys in this file: UTF-8, a key a line. Empty lines are no keys.",
)
@click.option(
    "--key-format",
    type=click.Choice(list(_FORMATS)),
    default="utf-8",
    show_default=True,
    help="How keys are written.",
)
@click.option("--where", metavar="EXPR", help="Records for which this SQL expression is true; see above.")
@click.option(
    "--tombstones",
    is_flag=True,
    help="Keep key, offset and timestamp, drop value and headers, instead of the whole record.",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Read OUT again before it gets its name: it must hold none of the keys.",
)
@options.mode
@options.topic_ids
@engines.options
@options.max_decompressed_bytes
@options.threads
@options.as_json
def redact(
    source: str,
    out: str,
    keys: tuple[str, ...],
    key_file: BinaryIO | None,
    key_format: str,
    where: str | None,
    tombstones: bool,
    check: bool,
    mode: DamageMode,
    topic_ids: dict[str, str],
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    max_decompressed_bytes: int,
    threads: int | None,
    as_json: bool,
) -> int:
    """Write every partition at and below SRC into OUT without the records that are to be forgotten.

    Their bytes are nowhere in OUT; all else stays as it is: offsets, sequences, transactions, and every
    batch without such a record byte for byte. reconciliation.json says which offsets were redacted in
    which segments, but neither keys nor EXPR. SRC is only read, and must not change meanwhile.

    A key that no record has is told by its place, not by itself, and makes the exit code 1.

    EXPR is SQLite's SQL over offset, timestamp (ms), key, value and headers. Keys and values in UTF-8 are
    text, others and those with zero bytes blobs (X'0aff'), absent ones NULL; headers is a JSON array of
    [name, value] pairs, and header(headers, 'name') the last value of that name. LIKE and GLOB look into
    blobs, too; LIKE takes upper and lower case alike. EXPR sees one record, so it has no SELECT in it.

    \b
    magicbyte redact --key user-4711 /backup/kafka-logs out/
    magicbyte redact --key-file users.txt --tombstones /backup/kafka-logs out/
    magicbyte redact --where "value LIKE '%bob@example.com%' OR headers LIKE '%bob@example.com%'" logs/ out/
    magicbyte redact --where "json_valid(value) AND value ->> '$.user.id' = 4711" logs/ out/
    magicbyte redact --where "timestamp < 1700000000000 AND header(headers, 'tenant') = 'x'" logs/ out/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.jobs.progress import terminal_progress
    from magicbyte.jobs.redact import RedactOptions, redact_partitions

    def parse(key: str) -> bytes:
        return _parse(key, key_format)

    lines = read_keys(key_file, parse) if key_file else []
    asked = RedactOptions(
        keys=[*map(parse, keys), *(key for _, key in lines)],
        where=where,
        tombstones=tombstones,
        check=check,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=topic_ids,
    )
    with engines.chosen(f"magicbyte redact {source}", engine, master, conf, threads) as runner:
        found = redact_partitions([source], out, runner, asked, terminal_progress())
    code = report.written(found, out, report.print_clean, as_json=as_json)
    unmatched = [range(first, last + 1) for first, last in found["unmatched_keys"]]
    if not unmatched:
        return code
    if not as_json:
        count = sum(map(len, unmatched))
        names = [
            f"--key number {place + 1}"
            if place < len(keys)
            else f"line {lines[place - len(keys)][0]} of {key_file.name if key_file else ''}"
            for place in islice(chain.from_iterable(unmatched), _SHOWN)
        ]
        print_line(
            f"{count:,} of the keys in no record: {', '.join(names)}{', ...' if count > _SHOWN else ''}"
        )
    return PROBLEMS if code == CLEAN else code


def _parse(key: str, key_format: str) -> bytes:
    try:
        return _FORMATS[key_format](key)
    except (ValueError, binascii.Error):
        # Not the key itself: it may be what is to be forgotten.
        raise click.UsageError(f"a key is not written in {key_format}") from None
