"""Protocol messages as dicts; tests/interop/test_messages.py compares every version with Kafka's classes."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest
from magicbyte import Error
from magicbyte.message import (
    Message,
    apis,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

HEADER = {"correlationId": 7, "clientId": "me"}


def failed(call: Any, *arguments: Any, **keywords: Any) -> Error:
    with pytest.raises(Error) as caught:
        call(*arguments, **keywords)
    return caught.value


def test_apis() -> None:
    found = apis()
    assert [api.key for api in found] == sorted({api.key for api in found})
    assert len(found) == 95
    by_name = {api.name: api for api in found}
    assert by_name["Produce"][2:] == (0, 13, 9)
    assert by_name["Fetch"][2:] == (0, 18, 12)
    # Of Kafka 3.9, since removed.
    assert by_name["LeaderAndIsr"][2:] == (0, 7, 4)


def test_bytes_of_a_request() -> None:
    """By hand, after the protocol's guide: version 8 is not flexible, version 9 is."""
    body = {"topics": [{"name": "ab"}], "allowAutoTopicCreation": False}
    old = encode_request("Metadata", 8, body, header=HEADER)
    assert old.hex(" ") == "00 03 00 08 00 00 00 07 00 02 6d 65 00 00 00 01 00 02 61 62 00 00 00"
    new = encode_request("Metadata", 9, body, header=HEADER)
    # The client id is never compact.
    assert new.hex(" ") == "00 03 00 09 00 00 00 07 00 02 6d 65 00 02 03 61 62 00 00 00 00 00"
    for frame, version in ((old, 8), (new, 9)):
        read = decode_request(frame)
        assert (read.api, read.api_key, read.api_version) == ("Metadata", 3, version)
        assert read.header == {"requestApiKey": 3, "requestApiVersion": version, **HEADER}
        assert read.body["topics"] == [{"name": "ab"}]


def test_headers() -> None:
    # ControlledShutdown 0 has no client id; a response to ApiVersions has never tagged fields in its header.
    assert encode_request(7, 0, {"brokerId": 5}).hex() == "00070000" + "00000000" + "00000005"
    response = encode_response("ApiVersions", 3, {}, header={"correlationId": 1})
    assert response.hex() == "00000001" + "0000" + "01" + "00000000" + "00"
    assert encode_response("Metadata", 9, {}, header={"correlationId": 1})[:5].hex() == "0000000100"


def test_unknown_tagged_fields_are_kept() -> None:
    body = {"topics": None, "_unknownTaggedFields": {9: b"nine", 100_000: b""}}
    header = {**HEADER, "_unknownTaggedFields": {3: b"x"}}
    frame = encode_request("Metadata", 12, body, header=header)
    read = decode_request(frame)
    assert read.body["_unknownTaggedFields"] == {9: b"nine", 100_000: b""}
    assert read.header["_unknownTaggedFields"] == {3: b"x"}
    assert encode_request(3, 12, read.body, header=read.header) == frame
    assert "no tags" in str(failed(encode_request, "Metadata", 8, body))
    taken = {"_unknownTaggedFields": {0: b""}}
    assert "it is clusterId" in str(failed(encode_request, "Fetch", 12, taken))


def test_the_answer_to_an_unsupported_version() -> None:
    answer = encode_response(18, 0, {"errorCode": 35, "apiKeys": [{"apiKey": 18, "maxVersion": 3}]})
    read = decode_response(answer, 18, 5)
    assert (read.api_version, read.body["errorCode"]) == (0, 35)
    assert read.body["apiKeys"] == [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]
    # Only with that error.
    other = encode_response(18, 0, {"errorCode": 0, "apiKeys": [{"apiKey": 18}]})
    assert failed(decode_response, other, 18, 5).kind == "invalid_message"


def test_values() -> None:
    partition = {"partition": 1, "fetchOffset": 5, "partitionMaxBytes": 2}
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [partition]}
    read = decode_request(encode_request("Fetch", 18, {"topics": [topic], "clusterId": "c"}))
    assert read.body["topics"][0]["topicId"] == topic["topicId"]
    assert read.body["clusterId"] == "c"
    assert read.body["topics"][0]["partitions"][0]["currentLeaderEpoch"] == -1
    produce = {"acks": 1, "topicData": [{"name": "t", "partitionData": [{"records": memoryview(b"abc")}]}]}
    read = decode_request(encode_request("Produce", 9, produce))
    assert read.body["topicData"][0]["partitionData"] == [{"index": 0, "records": b"abc"}]
    # As the keys of record headers.
    frame = encode_request("Metadata", 9, {"topics": [{"name": "\udcff"}]})
    assert b"\x02\xff" in frame
    assert decode_request(frame).body["topics"] == [{"name": "\udcff"}]


@pytest.mark.parametrize(
    ("api", "version", "body", "field", "text"),
    [
        ("Metadata", 9, {"topic": []}, None, "no field \"topic\": expected some of topics,"),
        ("Metadata", 9, {"topics": 5}, "topics", "topics: an integer: expected an array"),
        ("Metadata", 9, {"topics": [{"name": None}]}, "name", "topics[0].name: null, which this version"),
        ("Metadata", 9, {"topics": [None]}, "topics", "topics[0]: null: expected a structure"),
        ("Metadata", 9, {"topics": [{"name": b"x"}]}, "name", "topics[0].name: bytes: expected a string"),
        ("Metadata", 9, {"topics": [{"name": "x" * 40_000}]}, "name", "expected at most 32767"),
        ("Produce", 9, {"acks": 1 << 15}, "acks", "32768 does not fit into 2 bytes"),
        ("Produce", 9, {"acks": True}, "acks", "a boolean: expected an integer"),
        ("Fetch", 13, {"topics": [{"topicId": "x"}]}, "topicId", "not a UUID"),
        ("Metadata", 0, {"topics": None}, "topics", "null, which this version does not allow"),
    ],
)  # fmt: skip
def test_refused_values(api: str, version: int, body: Any, field: str | None, text: str) -> None:
    error = failed(encode_request, api, version, body)
    assert (error.kind, error.field) == ("invalid_message", field)
    assert text in str(error)
    assert str(error).startswith(f"{api}Request version {version}")


def test_refused_calls() -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(ValueError, match="32 levels"):
        encode_request(3, 9, {"topics": nested})
    with pytest.raises(TypeError, match=r"^[a-zA-Z]+: expected None, bool, .* not set$"):
        encode_request(3, 9, {"topics": {1}})
    with pytest.raises(ValueError, match="no API is named 'Meta': expected one of Produce, Fetch"):
        encode_request("Meta", 9, {})
    for call in (encode_request, encode_response):
        assert failed(call, 3, 99, {}).kind == "unsupported_version"
    error = failed(decode_response, b"", 999, 0)
    assert (error.kind, error.field, error.position) == ("unsupported_version", "requestApiKey", None)
    error = failed(decode_request, bytes.fromhex("00030063") + bytes(8))
    assert (error.kind, error.position) == ("unsupported_version", 2)
    assert "MetadataRequest version 99 is not known: expected 0 to 13" in str(error)


def test_damaged_frames_name_the_place() -> None:
    frame = encode_request("Metadata", 8, {"topics": [{"name": "ab"}]}, header=HEADER)
    error = failed(decode_request, frame[:19])
    assert (error.kind, error.position, error.field) == ("invalid_message", 18, "name")
    assert "MetadataRequest version 8, topics[0].name: the bytes end inside it" in str(error)
    error = failed(decode_request, frame + b"xy")
    assert error.position == len(frame)
    assert "2 bytes remain after its end" in str(error)
    # A count that the bytes cannot hold.
    error = failed(decode_request, frame[:12] + b"\x7f\xff\xff\xff" + frame[16:])
    assert "2147483647 elements, but 7 bytes are left" in str(error)
    # A tagged field that is longer than its content.
    flexible = encode_request("Fetch", 12, {"clusterId": "c"})
    at = flexible.rindex(bytes([1, 0, 2, 2]))
    error = failed(decode_request, flexible[:at] + bytes([1, 0, 3, 2]) + flexible[at + 4 :] + b"z")
    assert (error.field, error.position) == ("clusterId", at + 5)
    assert "1 of the field's 3 bytes remain" in str(error)
    for length in range(len(frame)):
        assert failed(decode_request, frame[:length]).kind in ("invalid_message", "unsupported_version")


def test_any_bytes_are_a_message_or_an_error() -> None:
    """What is read can be written, and is then read as the same."""
    random = Random(5)
    # Small numbers are likely counts, lengths and tags.
    small = (0, 0, 0, 1, 1, 2, 255)
    found = 0
    for api in apis():
        for version in range(api.min_version, api.max_version + 1):
            header = struct.pack(">hhih", api.key, version, 7, -1)
            for size in (1, 4, 20, 60, 200):
                made = bytes(random.choice((*small, random.randrange(256))) for _ in range(size))
                found += is_message(header + made) + is_message(made, api.key, version)
    assert found > 200


def is_message(frame: bytes, *response: int) -> bool:
    """Whether a frame starts with a request, or with the response to this API and version."""
    decode: Any = decode_response if response else decode_request
    encode = encode_response if response else encode_request

    def written(message: Message) -> bytes:
        return encode(message.api_key, message.api_version, message.body, header=message.header)

    try:
        read = decode(frame, *response)
    except Error as error:
        if error.kind != "invalid_message":
            raise
        return "remain after its end" in str(error) and is_message(frame[: error.position], *response)
    once = written(read)
    assert written(decode(once, *((read.api_key, read.api_version) if response else ()))) == once
    return True


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def metadata(count: int, topics: bytes, tags: bytes = b"\0") -> bytes:
    """A Metadata request of version 9 with this many topics."""
    return struct.pack(">hhihs", 3, 9, 7, 1, b"x") + b"\0" + varint(count + 1) + topics + b"\0\0\0" + tags


def test_values_are_bounded() -> None:
    """As Kafka 4.4: 1,000,000 elements, 10,000 tagged fields; and the memory of all values."""
    most = 900_000
    names = struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", most) + b"\0\3abc" * most
    assert len(decode_request(names).body["topics"]) == most
    error = failed(decode_request, metadata(1_000_001, b"\1\0" * 1_000_001))
    assert (error.kind, error.field) == ("invalid_message", "topics")
    assert "1000001 elements: expected at most 1000000" in str(error)
    tags = b"".join(varint(1000 + tag) + b"\0" for tag in range(10_001))
    assert len(decode_request(metadata(0, b"", varint(10_000) + tags[:-3])).body) == 5
    error = failed(decode_request, metadata(0, b"", varint(10_001) + tags))
    assert "10001 tagged fields: expected at most 10000" in str(error)
    # Structures of few bytes, and tagged fields in each.
    for topic in (b"\1\0", b"\1\1\1\0"):
        error = failed(decode_request, metadata(999_999, topic * 999_999))
        assert "the values of the message take too much memory" in str(error)
    # Nested arrays, each as long as the bytes allow.
    partitions = varint(990_001) + bytes(4 * 990_000)
    group = struct.pack(">hhih", 9, 6, 7, -1) + b"\0" + b"\2g" + b"\4"
    error = failed(decode_request, group + (b"\2t" + partitions + b"\0") * 3 + b"\0")
    assert "OffsetFetchRequest version 6" in str(error)
    # What brokers send is far from the limit: 100,000 partitions in one response.
    body = {
        "topics": [
            {
                "name": "topic",
                "partitions": [
                    {"partitionIndex": n, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3]}
                    for n in range(100_000)
                ],
            }
        ]
    }
    frame = encode_response("Metadata", 12, body)
    assert len(decode_response(frame, "Metadata", 12).body["topics"][0]["partitions"]) == 100_000
