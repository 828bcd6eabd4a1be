"""Decodes the records of internal topics to the JSON that Kafka's own tools print for them."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.internal_topics.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    REMOTE_LOG_METADATA,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

__all__ = ["DECODERS", "Decoded", "Decoder", "decoder_of_topic"]

DELETED = "<DELETE>"
_MEMBER_DATA = (
    ("subscription", "ConsumerProtocolSubscription"),
    ("assignment", "ConsumerProtocolAssignment"),
)

_MAX_MEMBER_DATA = 8 << 20
"""The limit for decoded data of a group's members, in base64 digits: decoded, it can take 50 times that."""


@dataclass(frozen=True)
class Decoded:
    """A decoded record of an internal topic."""

    name: str
    """Kafka's name for this type of record."""
    key: dict[str, Any] | None
    value: dict[str, Any] | str
    """`<DELETE>` for a coordinator's tombstone."""


@dataclass(frozen=True)
class Decoder:
    """Decodes the records of a topic."""

    topic: str
    secrets: bool = False
    """True to show passwords and keys; otherwise they are hidden: texts are `[hidden]`, bytes None."""

    def __call__(self, key: bytes | None, value: bytes | None) -> Decoded:
        """Decodes a key and a value.

        Raises:
            LookupError: for unknown types of records.
            Error: for invalid bytes.

        """
        kind, name, key_data, version, data = _core.decode_record(self.topic, key, value, self.secrets)
        if name is None:
            raise LookupError(kind)
        if key_data is None:
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
            return Decoded(name, None, {"type": name, "version": version, "data": data})
        decoded_key = {"type": str(kind), "data": key_data}
        if data is None:
            return Decoded(name, decoded_key, DELETED)
        if name == "GroupMetadata" and data["protocolType"] == "consumer":
            left = _MAX_MEMBER_DATA
            for member in data["members"]:
                for field, message in _MEMBER_DATA:
                    left -= len(member[field])
                    if left >= 0:
                        member[field] = _member_data(message, member[field])
        return Decoded(name, decoded_key, {"version": str(version), "data": data})

    def of_coordinator(
        self, key: bytes | None, value: bytes | None
    ) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
        """The name of a coordinator's record, and the data of its key and value; None for a tombstone.

        Raises:
            LookupError: for unknown types of records.
            Error: for invalid bytes.

        """
        decoded = self(key, value)
        assert decoded.key is not None
        data = decoded.value["data"] if isinstance(decoded.value, dict) else None
        return decoded.name, decoded.key["data"], data

    def hides(self, value: bytes | None) -> bool:
        """True if a value that does not decode must be hidden as well."""
        return value is not None and not self.secrets and _core.is_secret_record(self.topic, value)


def decoder_of_topic(topic: str) -> str:
    """The key in `DECODERS` for a topic; `none` for any topic that is not internal."""
    return _NAMES.get(topic, "none")


def _member_data(name: str, text: str) -> Any:
    """Decodes a classic consumer's subscription or assignment; other data stays as it is, as in Kafka."""
    try:
        return _core.decode_data(name, base64.b64decode(text))
    except Error:
        return text


_NAMES = {
    CONSUMER_OFFSETS: "offsets",
    TRANSACTION_STATE: "transactions",
    SHARE_GROUP_STATE: "share-group-state",
    CLUSTER_METADATA: "metadata",
    REMOTE_LOG_METADATA: "remote-log-metadata",
}
DECODERS: dict[str, Decoder | None] = {
    "none": None,
    **{name: Decoder(topic) for topic, name in _NAMES.items()},
}
