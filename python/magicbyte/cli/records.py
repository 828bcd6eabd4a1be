"""`magicbyte records`"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from magicbyte.cli import expressions, options, partition_choice
from magicbyte.cli.flags import flags
from magicbyte.cli.record_options import RecordOptions
from magicbyte.cli.schema_source import registry_config
from magicbyte.cli.typed import text_by_schemas
from magicbyte.jobs.find.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.cli.record_reading import Found
    from magicbyte.jobs.run.live_partitions import LivePartition
    from magicbyte.model import PartitionListing
    from magicbyte.storage.location import ClusterUrl

__all__ = ["records"]


@click.command(
    short_help="Print data records, or batches, as JSON lines, CSV or kcat's formats.",
    epilog=expressions.HELP,
)
@partition_choice.sources_or_clusters
@partition_choice.choice(prefer=True)
@flags(RecordOptions, "given")
@registry_config
def records(
    sources: tuple[str, ...], choice: PartitionChoice, given: RecordOptions, registry_config: str | None
) -> int:
    """Print the data records of SRC as JSON lines: one object per record, with the fields of its batch.

    SRC is a partition directory, a directory of them, or a segment file; or a running cluster, or a topic
    or partition of it: kafka://HOST:PORT/TOPIC/PARTITION. --follow goes on with what is produced there.
    Damaged batches are left out and reported on standard error. Of a partition that is there several times,
    --prefer names the copy to read. In the JSON of Kafka's internal topics,
    such as __consumer_offsets, keys and values are decoded into objects; passwords and keys in them are
    hidden, unless --show-secrets is given.

    With the format json, a key or value that is not JSON is null, and shown in the additional field
    invalidKey or invalidValue: as text, or in JSON lines as {"base64": ...} if it is not UTF-8. With avro
    and protobuf, and with json if there is a --schema-registry or one of --reader-schema and
    --key-reader-schema, it becomes JSON by the schema that it names, or that is given; if it cannot be
    decoded, it is also reported. With --validate, so is JSON that its schema does not allow. With
    --key-windows, the fields key_window_start and key_window_end have the times of a key's window, in ms.

    With --dead-letters, the records of dead-letter queues have the field source: topic, partition and offset
    of the record that they are of, its state (found, deleted, missing, after_end, absent or unnamed), and
    whether key and value are equal, different or not_copied.

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
    magicbyte records --dead-letters --topic orders.dlq /backup/kafka-logs | jq -c .source
    magicbyte records __consumer_offsets-7/ | jq .key
    magicbyte records kafka://broker:9092/orders --tail 10 --follow
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.record_lines import lines_of, print_batches, print_records
    from magicbyte.cli.record_reading import matching
    from magicbyte.cli.sources import partitions_of
    from magicbyte.jobs.run.selecting import record_filter
    from magicbyte.jobs.source_records import SourceRecords
    from magicbyte.live import split_sources

    by_schema = given.by_schema
    given.check()
    files, clusters = split_sources(sources, given.command_config)
    if given.follow and not clusters:
        raise click.UsageError("--follow goes on with a running cluster: SRC is kafka://HOST:PORT/TOPIC")
    if given.dead_letters and clusters:
        raise click.UsageError(
            "--dead-letters reads files: `magicbyte backup` makes some of a running cluster"
        )
    if given.batches:
        found, unread = _found(files, clusters, choice, given)
        return max(unread, print_batches(found, given))
    lines = lines_of(given, by_schema)
    wanted = [options.key_bytes(key, given.key_format) for key in given.keys]
    try:
        writer = lines.writer()
        filters = [matching(wanted, given.grep)] if wanted or given.grep is not None else []
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    where = None if given.where is None else record_filter(given.where)
    typed = text_by_schemas(given, by_schema, registry_config)
    found, unread = _found(files, clusters, choice, given)
    joined = None
    if given.dead_letters:
        # Also those that are not chosen: the choice is that of the dead letters.
        joined = SourceRecords(partitions_of(files)[0], given.max_decompressed_bytes)
    code = print_records(
        found, given, lines, writer, where=where, filters=filters, typed=typed, sources=joined
    )
    return max(unread, code)


def _found(
    files: Sequence[str], clusters: Sequence[ClusterUrl], choice: PartitionChoice, given: RecordOptions
) -> tuple[Found, int]:
    """The partitions in files and clusters, and the exit code of what cannot be read."""
    from magicbyte.cli.record_reading import Found
    from magicbyte.cli.sources import partitions_of, segments_only
    from magicbyte.jobs.find.partitions import without_copies
    from magicbyte.jobs.run.live_partitions import live_partitions

    listings, unread = partitions_of(segments_only(files), choice)

    def look() -> tuple[list[PartitionListing], list[LivePartition]]:
        live = live_partitions(clusters, given.command_config, choice, given.max_decompressed_bytes)
        described = [one.described for one in live]
        read = {one["path"] for one in without_copies([*listings, *described], choice)}
        return [one for one in listings if one["path"] in read], [one for one in live if one.path in read]

    return Found(*look(), live_again=lambda: look()[1]), unread
