"""The exceptions: a base class, and a subclass for each way in which bytes are unusable or a job fails."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "AppendError",
    "CorruptRecordError",
    "Error",
    "InvalidRecordError",
    "JobError",
    "LimitExceededError",
    "NeedMoreBytesError",
    "RecordError",
    "RefusedError",
    "UnsupportedCompressionError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
]


class Error(ValueError):
    """The base class of all errors here, and bytes that Kafka's format does not allow.

    Attributes:
        kind: a stable name of the error to compare with, such as ``"crc_mismatch"``.
        position: the batch's byte position in the input or file, or None.
        base_offset: the base offset in the batch's header, or None.
        record_index: the record's index in its batch, from 0, or None.
        field: the field concerned, in Kafka's spelling, or None.

    """

    kind: str
    position: int | None
    base_offset: int | None
    record_index: int | None
    field: str | None

    def __init__(
        self,
        message: str,
        kind: str = "error",
        position: int | None = None,
        base_offset: int | None = None,
        record_index: int | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.position = position
        self.base_offset = base_offset
        self.record_index = record_index
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        # In Spark an exception crosses process boundaries: its attributes go with it.
        state = (self.kind, self.position, self.base_offset, self.record_index, self.field)
        return type(self), (str(self), *state)


class CorruptRecordError(Error):
    """A wrong CRC or an impossible size (Kafka's CorruptRecordException)."""


class NeedMoreBytesError(CorruptRecordError):
    """Bytes that end inside a batch: a reader of a stream waits for the rest, and a log has a torn end."""


class InvalidRecordError(Error):
    """Content that breaks a rule, even if the CRC is correct (Kafka's InvalidRecordException)."""


class UnsupportedMagicError(Error):
    """A magic byte other than 0, 1 and 2."""


class UnsupportedCompressionError(Error):
    """A codec number that Kafka does not know, or a codec that this build lacks."""


class UnsupportedVersionError(Error, ConnectionError):
    """A broker that has no version of a request in common with this client (Kafka's
    UnsupportedVersionException).
    """

    def __init__(self, message: str, kind: str = "unsupported_version", *place: Any) -> None:
        super().__init__(message, kind, *place)


class LimitExceededError(Error):
    """Data larger than the caller allows, for example by ``max_decompressed_bytes``."""


class RecordError(NamedTuple):
    """The error of one record of an append (Kafka's ProduceResponse.RecordError)."""

    batch_index: int
    """Index of the record in its batch, from 0."""
    message: str
    """A description of the error."""


class AppendError(Error):
    """An append that a broker refuses; none of it is stored.

    Attributes:
        code: Kafka's name of the error, such as ``"INVALID_RECORD"``.
        error_code: its number in responses.
        record_errors: the records that break a rule themselves, at most 65536; empty if something else is
            wrong.

    `kind`, `position` and the other attributes describe the bytes at fault; `kind` is ``"append_refused"``
    if the bytes are valid.

    """

    code: str
    error_code: int
    record_errors: tuple[RecordError, ...]

    def __init__(
        self,
        message: str,
        code: str = "UNKNOWN_SERVER_ERROR",
        error_code: int = -1,
        record_errors: Iterable[tuple[int, str]] = (),
        kind: str = "append_refused",
        *place: Any,
    ) -> None:
        super().__init__(message, kind, *place)
        self.code = code
        self.error_code = error_code
        self.record_errors = tuple(RecordError(*error) for error in record_errors)

    def __reduce__(self) -> tuple[Any, ...]:
        kind, arguments = super().__reduce__()
        message, *place = arguments
        return kind, (message, self.code, self.error_code, self.record_errors, *place)


class JobError(Error):
    """A job that could not finish: the request was valid, but a file or an engine failed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "job_failed")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self),)


class RefusedError(JobError):
    """A job that refuses to start. Nothing was written, and the message explains what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.kind = "refused"
