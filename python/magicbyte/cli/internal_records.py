"""The records of Kafka's internal topics (`--decode`): their decoders, and their text as Kafka prints it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import Any

from magicbyte.errors import Error
from magicbyte.internal_topics.decode import DECODERS, Decoder, decoder_of_topic

__all__ = ["HIDDEN", "compact_json", "decoded_text", "decoder_for", "topic_of_file"]

HIDDEN = "[hidden]"
"""In the place of a value with secrets that cannot be decoded."""
_SHOWN = 64 << 10
"""Bytes of a value that does not decode: its hex digits take several times their memory."""
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def topic_of_file(path: str) -> str:
    """The topic of a file, from the name of its directory, `topic-N`."""
    directory = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return re.sub(r"-\d+$", "", directory)


def decoder_for(name: str, topic: str, *, secrets: bool) -> Decoder | None:
    """The decoder of this name, or None; `auto` chooses by the topic."""
    decoder = DECODERS[decoder_of_topic(topic) if name == "auto" else name]
    return decoder and replace(decoder, secrets=secrets)


def decoded_text(
    decode: Decoder, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str, Error | None]:
    """The end of a record's line, as Kafka's decoders print it, and the error, if the record has one.

    What cannot be decoded is named in Kafka's words, followed by the value in hex.
    """
    payload = "" if value is None else f" payload: {HIDDEN if decode.hides(value) else _hex(value)}"
    try:
        decoded = decode(key, value)
    except LookupError as unknown:
        return f" key: Unknown record type {unknown} at offset {offset}, skipping.{payload}", None
    except Error as error:
        return f" key: Error at offset {offset}, skipping. {error}{payload}", error
    text = "" if decoded.key is None else f" key: {compact_json(decoded.key)}"
    return f"{text} payload: {_value_text(decoded.value)}", None


def _hex(value: bytes) -> str:
    shown = value[:_SHOWN].hex()
    return shown if len(value) <= _SHOWN else f"{shown}... ({len(value)} bytes)"


def _value_text(value: dict[str, Any] | str | None) -> str:
    return value if isinstance(value, str) else compact_json(value)


def compact_json(document: Any) -> str:
    """JSON as Kafka's tools print it: no spaces, only necessary escapes, hex digits in capitals."""
    text = _ENCODER.encode(document)
    return _ESCAPE.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), text)
