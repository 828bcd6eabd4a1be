"""`magicbyte dump`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from magicbyte.cli import partition_choice
from magicbyte.cli.dump_options import DumpOptions
from magicbyte.cli.flags import flags
from magicbyte.cli.typed import typed_text
from magicbyte.jobs.find.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.cli.typed_text import TypedText

__all__ = ["dump"]


@click.command(short_help="Print segments and the files beside them, as kafka-dump-log does.")
@partition_choice.sources
@partition_choice.choice()
@flags(DumpOptions, "given")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the files beside segments as JSON lines, a line per entry."
)
@typed_text
def dump(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    given: DumpOptions,
    as_json: bool,
    text: TypedText | None,
) -> int:
    """Print SRC in the text format of kafka-dump-log --print-data-log.

    SRC is a segment file, one of the files beside segments (.index .timeindex .txnindex .snapshot
    .checkpoint leader-epoch-checkpoint partition.metadata) or in a broker's log directory (meta.properties
    .kafka_cleanshutdown *-offset-checkpoint), or a directory, whose segments are printed.

    Everything in the file is shown, including control records and aborted records. The records of Kafka's
    internal topics, such as __consumer_offsets, are decoded; passwords and keys in them are hidden, unless
    --show-secrets is given. With --value-format, each value is decoded by the schema that it names; a value
    that cannot be decoded is reported, and printed as it is. With --validate, so is JSON that its schema does
    not allow.

    \b
    magicbyte dump orders-0/ | head
    magicbyte dump orders-0/00000000000000000000.log --no-records
    magicbyte dump orders-0/ --start-offset 100 --end-offset 200
    magicbyte dump orders-0/*.index orders-0/*.snapshot
    magicbyte dump orders-0/ --value-format avro --schema-registry /backup/kafka-logs
    magicbyte dump __consumer_offsets-7/                who committed what?
    magicbyte dump backup/offsets --decode offsets      the same in a directory of another name
    magicbyte dump __cluster_metadata-0/*.checkpoint    KRaft: topics, brokers, configs, ACLs
    magicbyte dump --bytes --start-offset 1234 --max-records 1 orders-0/    the bytes of that batch
    magicbyte dump --json orders-0/*.timeindex orders-0/leader-epoch-checkpoint | jq -c

    With --bytes, a damaged batch is printed as far as its bytes make sense, followed by the error. The
    decompressed records of a compressed batch follow it. Offsets choose batches, and --max-records counts
    them.

    With --json, the fields have the names that kafka-dump-log or Kafka's classes give them. `magicbyte
    records` prints records as JSON lines, and with --batches batches.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.batch_bytes import print_bytes
    from magicbyte.cli.kafka_text import print_as_kafka
    from magicbyte.cli.sidecar_text import print_json, sidecars_only
    from magicbyte.cli.sources import files_of, readable, segments_only

    if as_json:
        if text is not None or given != DumpOptions():
            raise click.UsageError("--json goes with no other option: it prints all of a file")
        return print_json(sidecars_only(readable(sources)))
    if given.as_bytes and (given.no_records or text is not None or given.has_times):
        raise click.UsageError("--bytes goes with offsets and --max-records alone")
    files, unread = files_of(segments_only(sources) if given.as_bytes else readable(sources), choice)
    code = print_bytes(files, given) if given.as_bytes else print_as_kafka(files, given, text)
    return max(unread, code)
