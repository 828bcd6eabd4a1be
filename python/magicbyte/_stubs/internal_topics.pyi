"""Records of Kafka's internal topics: used by `magicbyte.internal_topics`."""

from typing import Any, Final, final

from magicbyte._stubs.batches import LegacyBatch, RecordBatch
from magicbyte.errors import Error
from typing_extensions import Buffer

TRANSACTION_STATES: Final[list[str]]
"""The names of the states of transactions in `__transaction_state`, by their ids."""

def decode_record(
    topic: str, key: Buffer | None, value: Buffer | None, secrets: bool = True
) -> tuple[int, str | None, dict[str, Any] | None, int | None, dict[str, Any] | None]:
    """Decodes a record of `topic` as Kafka's JSON converters do: its type, Kafka's name of the type, the key,
    the value's version, and the value.

    The name is that of the message, without `Key`; None for an unknown type, of which nothing is
    decoded. Only coordinators' records have a key, and tombstones have no value. Bytes are in base64, uuids
    in Kafka's text form; tagged fields are present only if they differ from their default. Without `secrets`,
    passwords and keys are hidden.

    Raises Error with `position` in the key or value.
    """

def is_secret_record(topic: str, value: Buffer) -> bool:
    """True if a value of `topic` is a record of a type with secrets, even if it cannot be decoded."""

def decode_data(name: str, data: Buffer) -> dict[str, Any]:
    """Decodes `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment`, after its version.

    Raises Error with `position`.
    """

def encode_metadata_record(record_type: int, version: int, data: dict[str, Any]) -> bytes:
    """Encodes the value of a record of `__cluster_metadata` (`MetadataRecordSerde`), by its type's number.
    Missing fields have their defaults; values are those of `magicbyte.message.encode_request`.

    Raises Error for an unknown type or version, and for a field or value that the version does not have.
    """

def encode_coordinator_record(
    topic: str, record_type: int, version: int, key: dict[str, Any], value: dict[str, Any]
) -> tuple[bytes, bytes]:
    """Encodes the key and value of a record of a coordinator's topic, such as `__consumer_offsets`
    (`CoordinatorRecordSerde`), by its type's number and the version of the value.

    Raises Error as `encode_metadata_record`.
    """

def encode_data(name: str, version: int, data: dict[str, Any]) -> bytes:
    """Encodes data by its name, such as `VotersRecord`. Of control records, it is the value; the version is
    their first field.

    Raises Error as `encode_metadata_record`.
    """

@final
class CommittedOffsets:
    """The committed offsets that the records of a partition of `__consumer_offsets` add up to. Takes memory
    for each group's partitions, not for the records.
    """

    def __new__(cls) -> CommittedOffsets: ...
    def replay(
        self, batch: RecordBatch | LegacyBatch
    ) -> tuple[list[tuple[int, bytes | None, bytes | None]], list[tuple[int, Error]]]:
        """Applies the commits of the next batch, or the end of a transaction. Returns its records of other
        types as offset, key and value, and the offset and error of each commit that does not decode.

        Raises Error if the batch does not decode.
        """

    @property
    def commits(self) -> list[tuple[str, str, int, int, int, str, int, int, int]]:
        """Group, topic, partition, offset, leader epoch, metadata, commit timestamp (ms), expire timestamp
        (ms) and record offset of each commit, in no particular order. -1 stands for a missing number.
        """

    @property
    def pending(self) -> int:
        """The number of offsets in transactions that had not ended."""
