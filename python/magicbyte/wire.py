r"""Kafka's protocol in captures of network traffic: requests with their responses, and the batches in them.

>>> from magicbyte.wire import Exchanges
>>> exchanges = Exchanges(["tests/data/wire/clients.pcap"])
>>> fetch = next(one for one in exchanges if one.api == "Fetch" and one.record_sets())
>>> fetch.client_id, fetch.api_version, fetch.topics, fetch.error_codes
('consumer-null-1', 18, ['orders'], [])
>>> (records,) = fetch.record_sets()
>>> records.topic, records.partition, records.data[:8]
('orders', 0, b'\x00\x00\x00\x00\x00\x00\x00\x00')

A capture is a pcap or pcapng file, as tcpdump and Wireshark write them, also compressed with gzip. It may
begin in the middle of a connection, and packets may be missing, come twice or in another order. What cannot
be read is counted in `Exchanges.summary`. Encrypted connections (TLS) are counted, and not read. Passwords,
keys and tokens in messages are hidden, unless `secrets` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

from magicbyte import _core
from magicbyte.message import Errors, Message, apis, decode_request, decode_response

__all__ = ["Exchange", "Exchanges", "RecordSet", "WireSummary"]

_API_NAMES = {api.key: api.name for api in apis()}
# Requests whose responses have names and ids of topics.
_NAMING = frozenset({"Metadata", "CreateTopics", "DescribeTopicPartitions"})
_MAX_NAMES = 1 << 18
_MAX_NAME = 249
"""The limit of `Topic.validate`: a longer name is no topic, and its text would only take memory."""


class RecordSet(NamedTuple):
    """The batches of one partition in a message."""

    topic: str | None
    """The topic's name; None where the version has an id instead, and the capture does not name it."""
    topic_id: str | None
    """The topic's id, where the version has one."""
    partition: int
    """The partition's number."""
    data: bytes
    """Batches of any magic. A broker may have cut the last one (`read_batches` with `allow_partial`)."""


class WireSummary(NamedTuple):
    """The contents of a capture besides exchanges."""

    connections: int
    """TCP connections."""
    tls_connections: int
    """Encrypted connections."""
    other_connections: int
    """Connections with a protocol other than Kafka's."""
    other_packets: int
    """Packets that are not TCP over IP, or cannot be read."""
    lost_bytes: int
    """Bytes of packets that are missing from the capture."""
    skipped_bytes: int
    """Bytes of Kafka connections in which no frame was recognized, such as those before the first frame."""
    problems: list[str]
    """The first 100 problems and their places."""
    problems_left_out: int
    """The number of further problems."""


@dataclass(frozen=True)
class Exchange:
    """A request and its response, as far as the capture has them; messages are decoded when first used."""

    connection: int
    """The number of the connection in the capture, from 0."""
    client: str | None
    """Address and port of the client; None for streams."""
    server: str | None
    """Address and port of the server."""
    api_key: int | None
    """The API's number; None if the request is not in the capture, or is a token of SASL."""
    api_version: int | None
    """The version of the messages."""
    correlation_id: int | None
    """The id that the request and its response share."""
    is_sasl_token: bool
    """True if the frames are tokens after SaslHandshake version 0, which are not messages."""
    request_time: int | None
    """The capture time of the end of the request, in microseconds since 1970."""
    response_time: int | None
    """The capture time of the end of the response, in microseconds since 1970."""
    request_frame: bytes | None = field(repr=False)
    """The request without its size; None if the capture does not have it."""
    response_frame: bytes | None = field(repr=False)
    """The response without its size; a Produce request with `acks` 0 has none."""
    topic_ids: Mapping[str, str] = field(repr=False, compare=False)
    """Names of topics by id, as far as the capture has named them."""
    secrets: bool = field(default=False, repr=False, compare=False)
    """True if `request` and `response` include passwords, keys and tokens. The frames always do."""

    @property
    def api(self) -> str | None:
        """The API's name; its number as text if it is not known."""
        return None if self.api_key is None else _API_NAMES.get(self.api_key, str(self.api_key))

    @property
    def latency(self) -> int | None:
        """The time from the end of the request to the end of the response, in microseconds."""
        if self.request_time is None or self.response_time is None:
            return None
        return self.response_time - self.request_time

    @cached_property
    def request(self) -> Message | None:
        """The request, decoded: without `secrets`, as `decode_request` says. Raises `Error` if its bytes are
        not such a message.
        """
        if self.request_frame is None or self.is_sasl_token:
            return None
        return decode_request(self.request_frame, secrets=self.secrets)

    @cached_property
    def response(self) -> Message | None:
        """The response, decoded; None without its request. Raises `Error` as `request` does."""
        if self.response_frame is None or self.api_key is None or self.api_version is None:
            return None
        return decode_response(self.response_frame, self.api_key, self.api_version, secrets=self.secrets)

    @property
    def client_id(self) -> str | None:
        """The name that the client gives itself."""
        return None if self.request is None else self.request.header.get("clientId")

    @property
    def error_codes(self) -> list[int]:
        """The error codes in the response other than 0, each once."""
        codes: set[int] = set()
        if self.response is not None:
            _collect(self.response.body, codes)
        return sorted(codes)

    @property
    def errors(self) -> list[str]:
        """Kafka's names of these error codes, or the number as text where Kafka has no name."""
        return [Errors(code).name for code in self.error_codes]

    @property
    def topics(self) -> list[str]:
        """The topics that request or response name, by id if the name is not known.

        A fetch session names only what has changed since its last request.
        """
        found: dict[str, None] = {}
        for message in (self.request, self.response):
            for group in ("topics", "topicData", "responses"):
                elements = None if message is None else message.body.get(group)
                for one in elements or ():
                    if name := self._topic(one):
                        found[name] = None
        return list(found)

    def _topic(self, one: Any) -> str | None:
        if isinstance(one, str):
            return one
        if not isinstance(one, dict):
            return None
        name = one.get("name") or one.get("topic")
        topic_id = one.get("topicId")
        return name or (topic_id and self.topic_ids.get(topic_id, topic_id))

    def record_sets(self) -> list[RecordSet]:
        """The record sets of a Produce request, or of a Fetch, ShareFetch or FetchSnapshot response.

        Null record sets are left out, empty record sets are not. Raises `Error` as `request` does.
        """
        found: list[tuple[str | None, str | None, int, bytes]] = []
        if self.request_frame is not None and self.api == "Produce":
            found = _core.request_record_sets(self.request_frame)
        elif self.response_frame is not None and self.api_key is not None and self.api_version is not None:
            found = _core.response_record_sets(self.response_frame, self.api_key, self.api_version)
        return [
            RecordSet(topic or self.topic_ids.get(topic_id or ""), topic_id, partition, data)
            for topic, topic_id, partition, data in found
        ]


class Exchanges:
    """The exchanges of captures, each as soon as it is complete; can be iterated once.

    A request whose response is missing comes without it when a later one is answered, or at the end; a
    response without its request comes at the end.

    Memory: 256 MiB of incomplete messages, and a block of exchanges: 1 MiB, or the largest one. Raises
    OSError for a file that cannot be read, or is neither pcap nor pcapng.
    """

    def __init__(
        self,
        paths: Iterable[str | PathLike[str]],
        *,
        ports: Iterable[int] = (),
        topic_ids: Mapping[str, str] | None = None,
        secrets: bool = False,
    ) -> None:
        """Reads the files as one capture: connections go on from one to the next.

        Args:
            paths: pcap or pcapng files.
            ports: read only connections to these ports; none for all. Where the start of a connection is
                missing, the server is the side with one of them, or with the smaller port.
            topic_ids: the id of each topic that the capture does not name.
            secrets: also decode passwords, keys and tokens, which are otherwise hidden.

        """
        self._read(lambda: _core.WireReader(list(paths), list(ports)), topic_ids, secrets)

    @classmethod
    def of_streams(
        cls,
        requests: str | PathLike[str],
        responses: str | PathLike[str],
        *,
        topic_ids: Mapping[str, str] | None = None,
        secrets: bool = False,
    ) -> Exchanges:
        """Reads the bytes of one connection from two files: those of the client and those of the server."""
        made = cls.__new__(cls)
        made._read(lambda: _core.WireReader.of_streams(requests, responses), topic_ids, secrets)
        return made

    def _read(
        self, reader: Callable[[], _core.WireReader], topic_ids: Mapping[str, str] | None, secrets: bool
    ) -> None:
        self._reader = reader()
        self._secrets = secrets
        self.topic_ids: dict[str, str] = {one: topic for topic, one in (topic_ids or {}).items()}
        """Names of topics by id, as far as they are known."""
        self._blocks = self._all()

    def __iter__(self) -> Iterator[Exchange]:
        return self._blocks

    def __next__(self) -> Exchange:
        return next(self._blocks)

    def _all(self) -> Iterator[Exchange]:
        while block := self._reader.next_block():
            for connection, client, server, head, token, asked, answered, request, response in block:
                key, version, correlation_id = head or (None, None, None)
                exchange = Exchange(
                    connection,
                    client,
                    server,
                    key,
                    version,
                    correlation_id,
                    token,
                    asked,
                    answered,
                    request,
                    response,
                    self.topic_ids,
                    self._secrets,
                )
                self._learn(exchange)
                yield exchange

    def _learn(self, exchange: Exchange) -> None:
        if exchange.api not in _NAMING:
            return
        try:
            response = exchange.response
        except ValueError:
            return
        for one in (response.body.get("topics") if response else None) or ():
            name, topic_id = one.get("name"), one.get("topicId")
            if name and topic_id and len(name) <= _MAX_NAME and len(self.topic_ids) < _MAX_NAMES:
                self.topic_ids.setdefault(topic_id, name)

    @property
    def summary(self) -> WireSummary:
        """The contents besides exchanges, so far."""
        return WireSummary(*self._reader.summary())


def _collect(value: Any, codes: set[int]) -> None:
    """Adds the error codes in a message."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name == "errorCode":
                if one:
                    codes.add(one)
            elif isinstance(one, (dict, list)):
                _collect(one, codes)
    elif isinstance(value, list):
        for one in value:
            _collect(one, codes)
