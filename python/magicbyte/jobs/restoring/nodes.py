"""The nodes that are restored, with the directories that each of them gets, and the voters among them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.metadata.nodes import Endpoint, Voter
from magicbyte.jobs.find.log_dirs import LogDir
from magicbyte.options.restore import GivenVoter

__all__ = ["Node", "nodes_of", "voters_of"]

_CONTROLLER = "CONTROLLER"
"""The usual name of the controllers' listener."""


@dataclass(frozen=True)
class Node:
    """A node that is restored."""

    node_id: int
    log_dirs: tuple[LogDir, ...]
    """Its directories in the sources, that with the metadata first, as Kafka expects it by default."""
    has_metadata_dir: bool = False
    """True if the first one has nothing but the metadata (`metadata.log.dir`)."""
    in_place: bool = False
    """True if its directories themselves are restored."""

    @property
    def places(self) -> list[str]:
        """The directories in the output that stand for `log_dirs`."""
        if self.in_place:
            return [one.path for one in self.log_dirs]
        return [f"node{self.node_id}/metadata"] * self.has_metadata_dir + self.data_places

    @property
    def data_places(self) -> list[str]:
        """Those of them that are for partitions (`log.dirs`)."""
        own = self.log_dirs[self.has_metadata_dir :]
        if self.in_place:
            return [one.path for one in own]
        return [f"node{self.node_id}/logs{number}" for number, _ in enumerate(own, 1)]

    def place_of(self, directory: str) -> str | None:
        """The directory in the output for the log directory of the sources with this path."""
        pairs = zip(self.log_dirs, self.places, strict=True)
        return next((place for log_dir, place in pairs if log_dir.path == directory), None)


def nodes_of(
    log_dirs: Iterable[LogDir],
    copies_of_metadata: Collection[str],
    with_partitions: Collection[str],
    state: ClusterState,
    chosen: Sequence[int],
) -> dict[int, Node]:
    """The chosen nodes by id, or all of which there is a directory. `with_partitions` are the directories in
    which there are partitions.

    Raises:
        RefusedError: there is no directory of one of them.

    """
    by_node: dict[int, dict[str, LogDir]] = defaultdict(dict)
    for log_dir in sorted(log_dirs, key=lambda one: one.path):
        # A broker that was migrated from ZooKeeper keeps its old meta.properties.
        is_node = log_dir.is_kraft or log_dir.broker_id in state.nodes.brokers
        if log_dir.broker_id is not None and is_node:
            # A disk and its copy are one directory.
            by_node[log_dir.broker_id].setdefault(log_dir.directory_id or log_dir.path, log_dir)
    if not by_node:
        raise RefusedError("no directory among the sources has the meta.properties of a KRaft node")
    if absent := [node for node in chosen if node not in by_node]:
        raise RefusedError(
            f"there is no directory of node {absent[0]}: the sources are of {_listed(sorted(by_node))}"
        )
    with_metadata = {os.path.dirname(path) for path in copies_of_metadata}
    nodes = {}
    for node_id in sorted(chosen or by_node):
        own = sorted(by_node[node_id].values(), key=lambda one: one.path not in with_metadata)
        registered = state.log_dirs(node_id)
        first = own[0]
        # Brokers register only the directories of their log.dirs.
        is_only_metadata = (
            len(own) > 1
            and first.path in with_metadata
            and first.path not in with_partitions
            and (first.directory_id not in registered)
        )
        nodes[node_id] = Node(node_id, tuple(own), is_only_metadata)
    return nodes


def voters_of(given: Sequence[GivenVoter], state: ClusterState, nodes: Mapping[int, Node]) -> list[Voter]:
    """The voters of the new quorum: those that are given, or the old ones if all of them are restored.

    Raises:
        RefusedError: voters are not restored, or have no directory of the id that they need.

    """
    voters = [_given(one, state, nodes) for one in given] or [
        _known(one, state) for one in state.quorum.voters
    ]
    if not voters:
        raise RefusedError("nothing tells the voters of the old quorum: name the new ones (--voters)")
    if absent := [one.voter_id for one in voters if one.voter_id not in nodes]:
        raise RefusedError(
            f"the quorum would have voters that are not restored, {_listed(absent)}: name the voters from now"
            f" on, such as --voters {next(iter(nodes))}@HOST:PORT"
        )
    if state.quorum.kraft_version > 0:
        for voter in voters:
            found = nodes[voter.voter_id].log_dirs[0].directory_id
            if voter.directory_id is None or voter.directory_id != found:
                raise RefusedError(
                    f"voter {voter.voter_id} has the directory {voter.directory_id}, but its metadata will be"
                    f" in {found}: name the voters from now on (--voters)"
                )
    return voters


def _given(voter: GivenVoter, state: ClusterState, nodes: Mapping[int, Node]) -> Voter:
    node = nodes.get(voter.node_id)
    directory = voter.directory_id or (None if node is None else node.log_dirs[0].directory_id)
    names = [one.name for old in state.quorum.voters for one in old.endpoints]
    names += [one.name for old in state.nodes.controllers.values() for one in old.endpoints]
    name = next(iter(names), _CONTROLLER)
    return Voter(voter.node_id, directory, [Endpoint(name, voter.host.strip("[]"), voter.port)])


def _known(voter: Voter, state: ClusterState) -> Voter:
    """A voter with its address: in a static quorum, only its registration tells it."""
    registered = state.nodes.controllers.get(voter.voter_id)
    if voter.endpoints or registered is None:
        return voter
    return Voter(voter.voter_id, voter.directory_id, registered.endpoints)


def _listed(nodes: Iterable[int]) -> str:
    named = list(map(str, nodes))
    return f"node{'s' * (len(named) > 1)} {', '.join(named)}"
