"""`magicbyte dump`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.selection import Selection
from magicbyte.cli.selection import options as selection_options
from magicbyte.cli.typed import typed_text
from magicbyte.jobs.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.cli.typed_text import TypedText

__all__ = ["dump"]


@click.command(short_help="Print segments and the files beside them, as kafka-dump-log does.")
@partition_choice.sources
@partition_choice.options()
@selection_options
@click.option("--no-records", is_flag=True, help="Print batches only.")
@options.decode
@options.show_secrets
@typed_text
@options.max_decompressed_bytes
def dump(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    selection: Selection,
    no_records: bool,
    decode: str,
    show_secrets: bool,
    text: TypedText | None,
    max_decompressed_bytes: int,
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

    For JSON see `magicbyte records` and `magicbyte sidecars`.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.kafka_text import print_as_kafka
    from magicbyte.cli.sources import files_of, readable

    files, unread = files_of(readable(sources), choice)
    code = print_as_kafka(
        files,
        selection,
        decode=decode,
        show_secrets=show_secrets,
        typed=text,
        no_records=no_records,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    return max(unread, code)
