"""`magicbyte records`"""

from __future__ import annotations

import click

from magicbyte.cli import expressions, options, partition_choice
from magicbyte.cli.flags import flags
from magicbyte.cli.record_options import RecordOptions
from magicbyte.cli.schema_source import registry_config
from magicbyte.cli.typed import text_by_schemas
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["records"]


@click.command(
    short_help="Print data records, or batches, as JSON lines, CSV or kcat's formats.",
    epilog=expressions.HELP,
)
@partition_choice.sources
@partition_choice.choice()
@flags(RecordOptions, "given")
@registry_config
def records(
    sources: tuple[str, ...], choice: PartitionChoice, given: RecordOptions, registry_config: str | None
) -> int:
    """Print the data records of SRC as JSON lines: one object per record, with the fields of its batch.

    SRC is a partition directory, a directory of them, or a segment file. Damaged batches are left out and
    reported on standard error. In the JSON of Kafka's internal topics, such as __consumer_offsets, keys and
    values are decoded into objects; passwords and keys in them are hidden, unless --show-secrets is given.

    With the format json, a key or value that is not JSON is null, and shown in the additional field
    invalidKey or invalidValue: as text, or in JSON lines as {"base64": ...} if it is not UTF-8. With avro
    and protobuf, and with json if there is a --schema-registry or one of --reader-schema and
    --key-reader-schema, it becomes JSON by the schema that it names, or that is given; if it cannot be
    decoded, it is also reported. With --validate, so is JSON that its schema does not allow. With
    --key-windows, the fields key_window_start and key_window_end have the times of a key's window, in ms.

    FORMAT has %t topic, %p partition, %o offset, %T timestamp (ms), %k key, %K its length, %s value, %S its
    length, %R that as four bytes, %h headers, %%, and the escapes \\n \\r \\t \\xNN. Keys and values are
    written as the bytes that they are, or as the JSON text that avro, protobuf and json make of them.

    \b
    magicbyte records orders-0/ --max-records 10
    magicbyte records orders-0/ --tail 10 --value-format json | jq .value.customer
    magicbyte records orders-0/ --value-format avro --schema-registry /backup/kafka-logs | jq .value.total
    magicbyte records orders-0/ --value-format avro --reader-schema order.avsc -f '%o %s\\n'
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
    from magicbyte.cli.record_lines import lines_of, print_batches, print_records
    from magicbyte.cli.record_reading import matching
    from magicbyte.cli.sources import partitions_of, segments_only
    from magicbyte.jobs.run.selecting import record_filter

    by_schema = given.by_schema
    given.check()
    if given.batches:
        listings, unread = partitions_of(segments_only(sources), choice)
        return max(unread, print_batches(listings, given))
    lines = lines_of(given, by_schema)
    wanted = [options.key_bytes(key, given.key_format) for key in given.keys]
    try:
        writer = lines.writer()
        filters = [matching(wanted, given.grep)] if wanted or given.grep is not None else []
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    where = None if given.where is None else record_filter(given.where)
    typed = text_by_schemas(given, by_schema, registry_config)
    listings, unread = partitions_of(segments_only(sources), choice)
    code = print_records(listings, given, lines, writer, where=where, filters=filters, typed=typed)
    return max(unread, code)
