"""Decodes the records of internal topics to the JSON that Kafka's own tools print for them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from magicbyte.errors import Error, InvalidRecordError
from magicbyte.internal_topics.consumer_protocol import ASSIGNMENT, SUBSCRIPTION
from magicbyte.internal_topics.metadata import METADATA
from magicbyte.internal_topics.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    REMOTE_LOG_METADATA,
    TRANSACTION_STATE,
)
from magicbyte.internal_topics.offsets import OFFSETS
from magicbyte.internal_topics.reader import Reader, read_message
from magicbyte.internal_topics.remote_log import REMOTE_LOG
from magicbyte.internal_topics.schema import Message
from magicbyte.internal_topics.transactions import TRANSACTIONS

__all__ = ["DECODERS", "Decode", "Decoded", "decoder_of_topic"]

_FRAME_VERSION = 1
_GROUP_METADATA = 2
DELETED = "<DELETE>"


@dataclass(frozen=True)
class Decoded:
    """A decoded record of an internal topic."""

    name: str | None
    """Kafka's name for this type of record; None if it is unknown."""
    key: dict[str, Any] | None
    value: dict[str, Any] | str | None
    """`<DELETE>` for a coordinator's tombstone."""


Decode = Callable[[bytes | None, bytes | None], Decoded]
"""Decodes a key and a value. Raises LookupError for unknown types of records, and Error for invalid bytes."""


def decoder_of_topic(topic: str) -> str:
    """The key in `DECODERS` for a topic; `none` for any topic that is not internal."""
    return _TOPICS.get(topic, "none")


def _offsets(key: bytes | None, value: bytes | None) -> Decoded:
    return _coordinator(OFFSETS, key, value)


def _transactions(key: bytes | None, value: bytes | None) -> Decoded:
    return _coordinator(TRANSACTIONS, key, value)


def _coordinator(
    types: dict[int, tuple[Message, Message]], key: bytes | None, value: bytes | None
) -> Decoded:
    """Decodes a coordinator's record: type and key, version and value (`CoordinatorRecordSerde`)."""
    if key is None:
        raise InvalidRecordError("a record without a key")
    reader = Reader(key)
    kind = reader.number("int16", "the type of the record")
    if kind not in types:
        raise LookupError(kind)
    key_message, value_message = types[kind]
    name = key_message.name.removesuffix("Key")
    decoded_key = {"type": str(kind), "data": read_message(reader, key_message, 0)}
    if value is None:
        return Decoded(name, decoded_key, DELETED)
    reader = Reader(value)
    version = reader.number("int16", "the version of the value")
    _check_version(value_message, version)
    data = read_message(reader, value_message, version)
    if types is OFFSETS and kind == _GROUP_METADATA and data["protocolType"] == "consumer":
        for member in data["members"]:
            for field, message in (("subscription", SUBSCRIPTION), ("assignment", ASSIGNMENT)):
                member[field] = _consumer_protocol(member[field], message)
    return Decoded(name, decoded_key, {"version": str(version), "data": data})


def _consumer_protocol(text: str, message: Message) -> Any:
    """Decodes a classic consumer's subscription or assignment; other data stays as it is, as in Kafka."""
    try:
        reader = Reader(base64.b64decode(text))
        return read_message(reader, message, reader.number("int16", "version"))
    except Error:
        return text


def _metadata(_: bytes | None, value: bytes | None) -> Decoded:
    return _framed(METADATA, value)


def _remote_log(_: bytes | None, value: bytes | None) -> Decoded:
    return _framed(REMOTE_LOG, value)


def _framed(types: dict[int, Message], value: bytes | None) -> Decoded:
    """Decodes a frame: its version, type and version of the record, a message (`AbstractApiMessageSerde`)."""
    if value is None:
        raise InvalidRecordError("a record without a value")
    reader = Reader(value)
    frame = reader.uvarint("the frame version")
    if frame != _FRAME_VERSION:
        raise InvalidRecordError(f"frame version {frame}, expected {_FRAME_VERSION}")
    kind, version = reader.uvarint("the type of the record"), reader.uvarint("its version")
    if kind not in types:
        raise LookupError(kind)
    message = types[kind]
    _check_version(message, version)
    data = read_message(reader, message, version)
    if reader.remaining:
        raise InvalidRecordError(f"{reader.remaining} bytes are left after {message.name}")
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message.name).upper()
    return Decoded(name, None, {"type": name, "version": version, "data": data})


def _check_version(message: Message, version: int) -> None:
    if not 0 <= version <= message.last_version:
        raise InvalidRecordError(f"{message.name} of version {version}, known up to {message.last_version}")


DECODERS: dict[str, Decode | None] = {
    "none": None,
    "offsets": _offsets,
    "transactions": _transactions,
    "metadata": _metadata,
    "remote-log-metadata": _remote_log,
}
_TOPICS = {
    CONSUMER_OFFSETS: "offsets",
    TRANSACTION_STATE: "transactions",
    CLUSTER_METADATA: "metadata",
    REMOTE_LOG_METADATA: "remote-log-metadata",
}
