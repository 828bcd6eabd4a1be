"""`magicbyte records`"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

from magicbyte.cli import expressions, options, partition_choice
from magicbyte.cli.schema_source import http_settings
from magicbyte.cli.selection import Selection
from magicbyte.cli.selection import options as selection_options
from magicbyte.cli.typed import refuse_validation, schema_registry, validate_option
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["records"]


@click.command(
    short_help="Print data records, or batches, as JSON lines, CSV or kcat's formats.",
    epilog=expressions.HELP,
)
@partition_choice.sources
@partition_choice.options()
@selection_options
@click.option("--tail", type=options.COUNT, metavar="N", help="Only the last N records of each partition.")
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="Only records with this key; may be repeated."
)
@click.option(
    "--grep",
    metavar="REGEX",
    help="Only records whose key or value matches this regular expression (Rust's crate regex).",
)
@expressions.where("Only records for which this SQL expression is true.")
@click.option("--batches", is_flag=True, help="Print one object per batch instead of one per record.")
@click.option(
    "--format",
    "line_format",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="csv has the columns of the JSON lines; an empty field is null.",
)
@click.option("-f", "template", metavar="FORMAT", help="Print with a format string of kcat; see above.")
@click.option("-Z", "nulls", is_flag=True, help="With -f, print NULL for a key or value that is null.")
@options.key_format("The format of keys, including --key.", documents=True)
@options.value_format(
    "The format of values and header values; utf-8 shows invalid bytes as U+FFFD, json embeds documents.",
    documents=True,
)
@schema_registry
@validate_option
@options.decode
@options.show_secrets
@options.isolation_level
@options.max_decompressed_bytes
def records(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    selection: Selection,
    tail: int | None,
    keys: tuple[str, ...],
    grep: str | None,
    where: str | None,
    batches: bool,
    line_format: str,
    template: str | None,
    nulls: bool,
    key_format: str,
    value_format: str,
    schema_registry: str | None,
    registry_config: str | None,
    validate: bool,
    decode: str,
    show_secrets: bool,
    isolation_level: IsolationLevel,
    max_decompressed_bytes: int,
) -> int:
    """Print the data records of SRC as JSON lines: one object per record, with the fields of its batch.

    SRC is a partition directory, a directory of them, or a segment file. Damaged batches are left out and
    reported on standard error. In the JSON of Kafka's internal topics, such as __consumer_offsets, keys and
    values are decoded into objects; passwords and keys in them are hidden, unless --show-secrets is given.

    With the format json, a key or value that is not JSON is null, and shown as text in the additional field
    invalidKey or invalidValue. With avro and protobuf, and with json if there is a --schema-registry, it
    becomes JSON by the schema that it names; if it cannot be decoded, it is also reported. With --validate,
    so is JSON that its schema does not allow.

    FORMAT has %t topic, %p partition, %o offset, %T timestamp (ms), %k key, %K its length, %s value, %S its
    length, %R that as four bytes, %h headers, %%, and the escapes \\n \\r \\t \\xNN. Keys and values are
    written as the bytes that they are.

    \b
    magicbyte records orders-0/ --max-records 10
    magicbyte records orders-0/ --tail 10 --value-format json | jq .value.customer
    magicbyte records orders-0/ --value-format avro --schema-registry /backup/kafka-logs | jq .value.total
    magicbyte records orders-0/ --key user-4711 --grep 'cancel(l)?ed'
    magicbyte records orders-0/ --where "value LIKE '%bob%' AND header(headers, 'tenant') = 'x'"
    magicbyte records orders-0/ --format csv > orders.csv
    magicbyte records orders-0/ -f '%o %k: %s\\n'
    magicbyte records orders-0/ --start-timestamp 2024-05-01T12:00 --end-timestamp 2024-05-01T13:00
    magicbyte records orders-0/ --value-format base64 | jq -r .value
    magicbyte records orders-0/ --isolation-level read_committed | jq -c '[.offset, .producerId]'
    magicbyte records orders-0/ --batches | jq -s 'map(.size) | add'
    magicbyte records __consumer_offsets-7/ | jq .key
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.record_lines import Lines, print_batches, print_records
    from magicbyte.cli.record_reading import matching
    from magicbyte.cli.sources import partitions_of, segments_only
    from magicbyte.jobs.run.selecting import record_filter

    others = [line_format != "jsonl", template is not None, bool(keys), grep is not None, tail is not None]
    if batches and (any(others) or where is not None):
        raise click.UsageError("--batches goes with ranges, not with options about single records")
    if template is not None and line_format != "jsonl":
        raise click.UsageError("-f and --format exclude each other")
    if decode not in ("auto", "none") and any(others[:2]):
        raise click.UsageError("--decode is for JSON lines")
    formats = {"key": key_format, "value": value_format}
    by_schema: dict[str, Any] = {
        name: one for name, one in formats.items() if one in _of_schemas(schema_registry)
    }
    if by_schema and schema_registry is None:
        raise click.UsageError("the formats avro and protobuf need --schema-registry")
    if validate:
        refuse_validation(by_schema.values())
    if keys and "key" in by_schema:
        raise click.UsageError(f"--key is not for keys in the format {key_format}: see --where")
    formats |= dict.fromkeys(by_schema, "json")
    null = "NULL" if nulls else ""
    lines = Lines(line_format, template, formats["key"], formats["value"], null, decode, show_secrets)
    wanted = [options.key_bytes(key, key_format) for key in keys]
    try:
        writer = lines.writer()
        filters = [matching(wanted, grep)] if wanted or grep is not None else []
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    row_filter = None if where is None else record_filter(where)
    typed = None
    if schema_registry is not None and by_schema:
        from magicbyte.cli.typed_text import TypedText

        typed = TypedText.open(schema_registry, by_schema, http_settings(registry_config), validate=validate)
    listings, unread = partitions_of(segments_only(sources), choice)
    if batches:
        code = print_batches(
            listings,
            selection,
            isolation_level=isolation_level,
            max_decompressed_bytes=max_decompressed_bytes,
        )
    else:
        code = print_records(
            listings,
            selection,
            lines,
            writer,
            where=row_filter,
            filters=filters,
            tail=tail,
            typed=typed,
            isolation_level=isolation_level,
            max_decompressed_bytes=max_decompressed_bytes,
        )
    return max(unread, code)


def _of_schemas(registry: str | None) -> Collection[str]:
    """The formats that are decoded by schemas."""
    return ("avro", "protobuf") if registry is None else ("avro", "protobuf", "json")
