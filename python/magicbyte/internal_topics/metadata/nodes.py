"""Brokers, controllers and the voters of the quorum (`ClusterDelta`, `VoterSet`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from magicbyte import _core
from magicbyte._core import Record

__all__ = ["BrokerState", "ControllerState", "Endpoint", "NodesState", "QuorumState", "Voter"]

_FENCED, _UNFENCED = 1, -1
"""`BrokerRegistrationFencingChange`."""
_IN_CONTROLLED_SHUTDOWN = 1
_NO_DIRECTORY = "A" * 22


@dataclass(frozen=True)
class Endpoint:
    """A listener of a node."""

    name: str
    host: str
    port: int


@dataclass
class BrokerState:
    """A registered broker."""

    broker_id: int
    broker_epoch: int
    rack: str | None
    endpoints: list[Endpoint]
    fenced: bool
    """True if the broker may not lead, as after a crash."""
    in_controlled_shutdown: bool
    log_dirs: list[str] = field(default_factory=list)
    """The ids of its log directories; empty before Kafka 3.7."""


@dataclass(frozen=True)
class ControllerState:
    """A registered controller."""

    controller_id: int
    endpoints: list[Endpoint]


class NodesState:
    """The brokers and controllers that are registered, by id."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerState] = {}
        self.controllers: dict[int, ControllerState] = {}

    def replay(self, name: str, data: dict[str, Any]) -> None:
        """Applies a record of a node; records of other types change nothing."""
        match name:
            case "REGISTER_BROKER_RECORD":
                self.brokers[data["brokerId"]] = BrokerState(
                    data["brokerId"],
                    data["brokerEpoch"],
                    data["rack"],
                    _endpoints(data["endPoints"]),
                    data["fenced"],
                    data.get("inControlledShutdown", False),
                    data.get("logDirs") or [],
                )
            case "UNREGISTER_BROKER_RECORD":
                self.brokers.pop(data["brokerId"], None)
            case "BROKER_REGISTRATION_CHANGE_RECORD":
                # Damage may hide the registration.
                unknown = BrokerState(data["brokerId"], data["brokerEpoch"], None, [], True, False)
                _change(self.brokers.setdefault(data["brokerId"], unknown), data)
            case "FENCE_BROKER_RECORD" | "UNFENCE_BROKER_RECORD":
                if broker := self.brokers.get(data["id"]):
                    broker.fenced = name == "FENCE_BROKER_RECORD"
            case "REGISTER_CONTROLLER_RECORD":
                self.controllers[data["controllerId"]] = ControllerState(
                    data["controllerId"], _endpoints(data["endPoints"])
                )
            case "UNREGISTER_CONTROLLER_RECORD":
                self.controllers.pop(data["controllerId"], None)


def _change(broker: BrokerState, data: dict[str, Any]) -> None:
    fenced = data.get("fenced", 0)
    if fenced in (_FENCED, _UNFENCED):
        broker.fenced = fenced == _FENCED
    if data.get("inControlledShutdown", 0) == _IN_CONTROLLED_SHUTDOWN:
        broker.in_controlled_shutdown = True
    if directories := data.get("logDirs"):
        broker.log_dirs = directories


def _endpoints(data: list[dict[str, Any]]) -> list[Endpoint]:
    return [Endpoint(one["name"], one["host"], one["port"]) for one in data]


@dataclass(frozen=True)
class Voter:
    """A controller that votes."""

    voter_id: int
    directory_id: str | None
    """The id of its metadata directory; None in a static quorum (`controller.quorum.voters`)."""
    endpoints: list[Endpoint] = field(default_factory=list)


class QuorumState:
    """The quorum, according to the control records of the log and its snapshot."""

    def __init__(self) -> None:
        self.kraft_version = 0
        """1 if the voters are in the log, so that they can change (KIP-853)."""
        self.voters: list[Voter] = []
        self.leader: int | None = None
        """The leader that was elected last; None if the log does not say."""
        self.leader_epoch: int | None = None

    def replay(self, record: Record, leader_epoch: int) -> None:
        """Applies a control record.

        Raises:
            Error: it does not decode.

        """
        key, value = record.key_bytes, record.value_bytes
        if key is None or value is None or len(key) < 4:
            return
        match int.from_bytes(key[2:4]):  # ControlRecordType
            case 2:
                change = _decoded("LeaderChangeMessage", value)
                self.leader, self.leader_epoch = change["leaderId"], leader_epoch
                if self.kraft_version == 0:
                    self.voters = [Voter(one["voterId"], None) for one in change["voters"]]
            case 5:
                self.kraft_version = _decoded("KRaftVersionRecord", value)["kRaftVersion"]
            case 6:
                self.voters = [_voter(one) for one in _decoded("VotersRecord", value)["voters"]]

    def add_file(self, leader: int | None, leader_epoch: int, voters: list[int]) -> None:
        """Adds what a `quorum-state` says, as far as it is newer than the log, or the log does not say it."""
        if self.leader_epoch is None or leader_epoch > self.leader_epoch:
            self.leader, self.leader_epoch = leader, leader_epoch
        if not self.voters:
            self.voters = [Voter(voter, None) for voter in voters]


def _decoded(name: str, value: bytes) -> dict[str, Any]:
    # The version of the message is also the first of its fields.
    return _core.decode_data(name, value[:2] + value)


def _voter(data: dict[str, Any]) -> Voter:
    directory = data["voterDirectoryId"]
    return Voter(
        data["voterId"], None if directory == _NO_DIRECTORY else directory, _endpoints(data["endpoints"])
    )
