"""`encode_coordinator_record`: the bytes are those that brokers wrote, and nothing else is accepted."""

from __future__ import annotations

from typing import Any

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte import _core

OFFSETS, SHARED = "__consumer_offsets", "__share_group_state"
COMMIT, SNAPSHOT = 1, 0


def test_commits_of_brokers() -> None:
    found = 0
    for directory in sorted(KAFKA.glob("consumer_offsets_*")):
        for record in magicbyte.PartitionLog(directory).records():
            kind, name, key, version, value = _core.decode_record(
                OFFSETS, record.key_bytes, record.value_bytes
            )
            if name == "OffsetCommit" and key is not None and value is not None and version is not None:
                found += 1
                encoded = _core.encode_coordinator_record(OFFSETS, kind, version, key, value)
                assert encoded == (record.key_bytes, record.value_bytes)
    assert found == 4


def test_fields_have_defaults() -> None:
    key, value = _core.encode_coordinator_record(SHARED, SNAPSHOT, 0, {}, {})
    kind, name, of, version, data = _core.decode_record(SHARED, key, value)
    assert (kind, name, version) == (SNAPSHOT, "ShareSnapshot", 0)
    assert of == {"groupId": "", "topicId": "A" * 22, "partition": 0}
    assert data is not None
    assert (data["startOffset"], data["stateBatches"]) == (0, [])


@pytest.mark.parametrize(
    ("topic", "kind", "version", "key", "value", "why"),
    [
        ("orders", COMMIT, 3, {}, {}, "orders has no record of type 1"),
        ("__cluster_metadata", COMMIT, 0, {}, {}, "__cluster_metadata has no record of type 1"),
        (OFFSETS, 999, 0, {}, {}, "has no record of type 999"),
        (OFFSETS, -1, 0, {}, {}, "has no record of type -1"),
        (OFFSETS, COMMIT, 99, {}, {}, "OffsetCommitValue version 99 is not known"),
        (OFFSETS, COMMIT, -1, {}, {}, "OffsetCommitValue version -1 is not known"),
        (OFFSETS, COMMIT, 3, {"groups": "g"}, {}, "groups"),
        (OFFSETS, COMMIT, 3, {"group": 7}, {}, "group"),
        (OFFSETS, COMMIT, 3, {}, {"offset": "7"}, "offset"),
        (OFFSETS, COMMIT, 3, {}, {"expireTimestamp": 5}, "expireTimestamp"),
        (SHARED, SNAPSHOT, 0, {"topicId": "no"}, {}, "topicId"),
        (SHARED, SNAPSHOT, 0, {}, {"stateBatches": [{"deliveryState": 300}]}, "deliveryState"),
    ],
)
def test_what_is_no_record(
    topic: str, kind: int, version: int, key: dict[str, Any], value: dict[str, Any], why: str
) -> None:
    with pytest.raises((magicbyte.Error, TypeError, ValueError)) as raised:
        _core.encode_coordinator_record(topic, kind, version, key, value)
    assert why in str(raised.value)
