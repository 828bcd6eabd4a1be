"""The records of the restored cluster's metadata (`MetadataImage`), and how they differ from the old ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.metadata.configs import BROKER, TOPIC
from magicbyte.internal_topics.metadata.snapshot import partition_record
from magicbyte.jobs.restoring.amendments import METADATA_VERSION
from magicbyte.jobs.restoring.placement import Placement

__all__ = ["SwitchedOff", "image_records", "switched_off"]

_ELR = "eligible.leader.replicas.version"
_UNCLEAN = "unclean.leader.election.enable"
_REMOTE = "remote.storage.enable"
_OF_QUORUM = "kraft.version"
_AFTER_PARTITIONS = (
    "CONFIG_RECORD",
    "ACCESS_CONTROL_ENTRY_RECORD",
    "CLIENT_QUOTA_RECORD",
    "USER_SCRAM_CREDENTIAL_RECORD",
    "DELEGATION_TOKEN_RECORD",
    "PRODUCER_IDS_RECORD",
)
_FLAGS = {TOPIC: "topics", BROKER: "brokers"}
_OFF = {
    _UNCLEAN: (
        "with it, a copy that was not in sync could lead before the others are there",
        "when all is in sync",
    ),
    _REMOTE: (
        "with it, a broker would delete segments in tiered storage, those of leader epochs before the first"
        " one of the restored log",
        "when the topic's segments in tiered storage are saved elsewhere or not needed",
    ),
}
"""The configs that are left out where they are true: why, and until when."""


class SwitchedOff(TypedDict):
    """A setting of the old cluster that the restored one starts without."""

    setting: str
    """Such as `orders: unclean.leader.election.enable=true`."""
    reason: str
    until: str
    """The time from which it may be switched on again, in words."""
    command: str
    """The command for that."""


def switched_off(state: ClusterState) -> list[SwitchedOff]:
    """The settings with which the restored cluster would lose partitions or segments when it starts."""
    found = []
    if level := state.features.get(_ELR):
        found.append(
            SwitchedOff(
                setting=f"{_ELR}={level}",
                until="when all is in sync",
                reason="with it, the first registration of a broker counts as an unclean shutdown, which"
                " takes it out of every ISR",
                command=f"kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature {_ELR}={level}",
            )
        )
    for key, _ in state.carried.of("CONFIG_RECORD"):
        if _is_off(state, key):
            kind, name, config = key
            entity = f"--entity-name {shlex.quote(name)}" if name else "--entity-default"
            reason, until = _OFF[config]
            found.append(
                SwitchedOff(
                    setting=f"{name or 'all brokers'}: {config}=true",
                    reason=reason,
                    until=until,
                    command="kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type"
                    f" {_FLAGS[kind]} {entity} --add-config {config}=true",
                )
            )
    return found


def _is_off(state: ClusterState, key: tuple[Any, ...]) -> bool:
    kind, name, config = key
    value = state.configs.of(kind, name).get(config, "")
    return kind in _FLAGS and config in _OFF and value.strip().lower() == "true"


def image_records(state: ClusterState, placements: Sequence[Placement]) -> Iterator[bytes]:
    """The values of the records, in the order of a snapshot. All but those of partitions are the old ones.

    Raises:
        Error: a partition has a number that does not fit.

    """
    features = {name: value for (name,), value in state.carried.of("FEATURE_LEVEL_RECORD")}
    # A controller needs it before all others.
    yield features.pop(METADATA_VERSION)
    yield from (value for name, value in features.items() if name not in (_ELR, _OF_QUORUM))
    yield from (value for _, value in state.carried.of("TOPIC_RECORD"))
    version = state.features[METADATA_VERSION]
    for one in placements:
        yield partition_record(one.topic.topic_id, one.number, one.state, version)
    for kind in _AFTER_PARTITIONS:
        for key, value in state.carried.of(kind):
            if kind != "CONFIG_RECORD" or not _is_off(state, key):
                yield value
