"""The records that the drop-ins read."""

from collections.abc import Iterable
from typing import Literal, Self, final

from typing_extensions import Buffer

@final
class AiokafkaDefaultRecord:
    """A record of magic 2; key, value and headers are copied on access."""

    def __new__(
        cls,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in order, including duplicates: (str, bytes or None)."""
    @property
    def checksum(self) -> None:
        """None: in magic 2 only the batch has a checksum."""

@final
class AiokafkaLegacyRecord:
    """A message of magic 0 or 1; key and value are copied on access."""

    def __new__(
        cls, offset: int, timestamp: int, attributes: int, key: bytes | None, value: bytes | None, crc: int
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int | None:
        """Milliseconds since 1970, or None."""
    @property
    def timestamp_type(self) -> Literal[0, 1] | None:
        """0, 1, or None if there is no timestamp."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """An empty list: magic 0 and 1 have no headers."""
    @property
    def checksum(self) -> int:
        """The message's stored CRC-32."""

@final
class KafkaPythonDefaultRecord:
    """A record of magic 2; key, value and headers are copied on access.

    The size is computed from the other arguments; `size_in_bytes` is ignored.
    """

    def __new__(
        cls,
        size_in_bytes: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in order, including duplicates: (str, bytes or None)."""
    @property
    def checksum(self) -> None:
        """None: in magic 2 only the batch has a checksum."""
    @property
    def size_in_bytes(self) -> int:
        """Size of the record without its length field."""
    def validate_crc(self) -> bool:
        """True: in magic 2 only the batch has a checksum."""

@final
class KafkaPythonControlRecord:
    """A record of a control batch. Its size is computed; `size_in_bytes` is ignored."""

    def __new__(
        cls,
        size_in_bytes: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in order, including duplicates: (str, bytes or None)."""
    @property
    def checksum(self) -> None:
        """None: in magic 2 only the batch has a checksum."""
    @property
    def size_in_bytes(self) -> int:
        """Size of the record without its length field."""
    @property
    def version(self) -> int:
        """The version in the key."""
    @property
    def type(self) -> int:
        """0 for an abort marker, 1 for a commit marker."""
    @property
    def abort(self) -> bool:
        """True for an abort marker."""
    @property
    def commit(self) -> bool:
        """True for a commit marker."""
    def validate_crc(self) -> bool:
        """True: in magic 2 only the batch has a checksum."""

@final
class KafkaPythonLegacyRecord:
    """A message of magic 0 or 1; key and value are copied on access.

    `validate_crc` compares `crc` with the CRC-32 of a message made from the other arguments; `crc_bytes`
    is ignored.
    """

    def __new__(
        cls,
        magic: int,
        offset: int,
        timestamp: int | None,
        timestamp_type: int | None,
        key: Buffer | None,
        value: Buffer | None,
        crc: int,
        crc_bytes: object,
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int | None:
        """Milliseconds since 1970; None in magic 0."""
    @property
    def timestamp_type(self) -> Literal[0, 1] | None:
        """0, 1, or None in magic 0."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """An empty list: magic 0 and 1 have no headers."""
    @property
    def checksum(self) -> int:
        """The message's stored CRC-32."""
    @property
    def magic(self) -> int:
        """0 or 1."""
    @property
    def size_in_bytes(self) -> int:
        """Size of the message including its offset and size fields."""
    def validate_crc(self) -> bool:
        """True if the message's own CRC-32 is correct."""
