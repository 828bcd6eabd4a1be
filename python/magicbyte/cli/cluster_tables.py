"""The tables about a cluster, for its text and its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from magicbyte.cli.html_page import Cell, Value
from magicbyte.cli.offsets import deliveries
from magicbyte.cli.times import time_text
from magicbyte.jobs.cluster import ClusterReport
from magicbyte.jobs.disks.brokers import ClusterBroker, Disk
from magicbyte.jobs.disks.groups import ClusterGroup, Position
from magicbyte.jobs.disks.settings import Configs, Settings
from magicbyte.jobs.disks.topics import ClusterPartition, ClusterTopic

__all__ = ["ClusterTable", "cluster_tables", "figures_of"]

_BAD = "hanging"
"""The colour of bad news."""


@dataclass(frozen=True)
class ClusterTable:
    """A table, with rows or without."""

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[Value]]
    notable: Sequence[Sequence[Value]] | None = None
    """The rows that a text shows; None for all."""


def figures_of(report: ClusterReport) -> list[tuple[str, str, str, bool]]:
    """The figures at the top: a stable name, a title, the figure as text, and True for bad news."""
    partitions = [one for topic in report["topics"] for one in topic["partitions"]]
    positions = [one for group in report["groups"] for one in group["positions"]]
    disks = [disk for broker in report["brokers"] for disk in broker["disks"]]
    counts = [
        ("brokers", "brokers", len(report["brokers"]), False),
        ("disks", "disks here", sum(disk["path"] is not None for disk in disks), False),
        ("disks.missing", "disks not here", sum(disk["path"] is None for disk in disks), True),
        ("topics", "topics", len(report["topics"]), False),
        ("partitions", "partitions", len(partitions), False),
        ("partitions.absent", "partitions not here", sum(not one["copies"] for one in partitions), True),
        ("partitions.leaderless", "without a leader", sum(one["leader"] == -1 for one in partitions), True),
        ("offsets.lost", "lost offsets", sum(one["lost_offsets"] or 0 for one in partitions), True),
        ("groups", "groups", len(report["groups"]), False),
        ("positions.hurt", "positions hurt", sum(map(_is_hurt, positions)), True),
        ("transactions.open", "open transactions", len(report["open_transactions"]), False),
        ("transactions.hanging", "hanging", sum(one["hanging"] for one in report["open_transactions"]), True),
        ("problems", "problems", len(report["problems"]), True),
    ]
    return [(key, title, f"{count:,}", bad and count > 0) for key, title, count, bad in counts]


def cluster_tables(report: ClusterReport) -> Iterator[ClusterTable]:
    """Yields all tables."""
    yield ClusterTable(
        "Copies of the metadata",
        ["directory", "node", "leader epoch", "last offset", "snapshot"],
        [
            [one["path"], _id(one["node_id"]), one["leader_epoch"], one["last_offset"], one["snapshot"]]
            for one in report["metadata"]
        ],
    )
    yield from _quorum(report)
    yield ClusterTable(
        "Brokers and their disks",
        ["broker", "rack", "state", "listeners", "directory id", "here", "partitions here", "assigned"],
        [row for broker in report["brokers"] for row in _disks(broker)],
    )
    yield _topics(report["topics"])
    yield _partitions(report["topics"])
    yield ClusterTable(
        "Directories of no partition of the cluster",
        ["directory", "topic id", "why"],
        [[one["path"], one["topic_id"], one["reason"]] for one in report["unassigned"]],
    )
    if report["settings"] is not None:
        yield from _settings(report["settings"])
    yield from _groups(report["groups"])
    yield from _transactions(report)
    yield ClusterTable("Problems", ["what"], [[problem] for problem in report["problems"]])


def _quorum(report: ClusterReport) -> Iterator[ClusterTable]:
    if (quorum := report["quorum"]) is not None:
        leader, epoch = quorum["leader"], quorum["leader_epoch"]
        yield ClusterTable(
            "Controllers",
            ["controller", "role", "listeners", "directory id"],
            [
                [
                    str(one["controller_id"]),
                    f"leader of epoch {epoch}"
                    if one["controller_id"] == leader
                    else "voter"
                    if one["is_voter"]
                    else "observer",
                    ", ".join(one["endpoints"]) or None,
                    one["directory_id"],
                ]
                for one in quorum["controllers"]
            ],
        )


def _disks(broker: ClusterBroker) -> list[list[Value]]:
    """A row for each disk; one row for a broker of which no disk is known."""
    fenced, shutdown = broker["fenced"], broker["in_controlled_shutdown"]
    state = None if fenced is None else "fenced" if fenced else "stopping" if shutdown else "running"
    listeners = ", ".join(broker["endpoints"]) or None
    about: list[Value] = [str(broker["broker_id"]), broker["rack"], state, listeners]
    if not broker["disks"]:
        return [[*about, None, Cell("missing", _BAD), 0, broker["replicas"]]]
    return [[*about, *_disk(disk)] for disk in broker["disks"]]


def _disk(disk: Disk) -> list[Value]:
    note = " (not registered)" if disk["registered"] is False else ""
    here = Cell("missing", _BAD) if disk["path"] is None else disk["path"] + note
    return [disk["directory_id"], here, disk["partitions"], disk["assigned"]]


def _topics(topics: Iterable[ClusterTopic]) -> ClusterTable:
    rows: list[list[Value]] = []
    for topic in topics:
        partitions = topic["partitions"]
        factors = {len(one["replicas"]) for one in partitions if one["replicas"] is not None}
        configs = ", ".join(f"{name}={value}" for name, value in sorted(topic["configs"].items()))
        rows.append(
            [
                topic["topic"],
                topic["topic_id"],
                len(partitions),
                sum(bool(one["copies"]) for one in partitions),
                max(factors, default=None),
                sum(one["leader"] == -1 for one in partitions),
                sum(one["lost_offsets"] or 0 for one in partitions),
                topic["known_from"],
                configs or None,
            ]
        )
    names = ["topic", "id", "partitions", "here", "replicas", "no leader", "lost", "known from", "configs"]
    return ClusterTable("Topics", names, rows)


def _partitions(topics: Iterable[ClusterTopic]) -> ClusterTable:
    every = [(f"{one['topic']}-{own['partition']}", own) for one in topics for own in one["partitions"]]
    return ClusterTable(
        "Partitions",
        ["partition", "leader", "epoch", "replicas", "isr", "elr", "here on", "log start", "log end", "lost"],
        [_partition(*one) for one in every],
        [_partition(*one) for one in every if _is_notable(one[1])],
    )


def _is_notable(partition: ClusterPartition) -> bool:
    replicas, isr = partition["replicas"], partition["isr"]
    return (
        partition["leader"] == -1
        or not partition["copies"]
        or bool(partition["lost_offsets"])
        or bool(partition["adding_replicas"] or partition["removing_replicas"])
        or (replicas is not None and isr is not None and len(isr) < len(replicas))
    )


def _partition(name: str, partition: ClusterPartition) -> list[Value]:
    copies = [
        f"{'?' if copy['broker_id'] is None else copy['broker_id']}"
        + ("" if copy["state"] == "current" else f" ({copy['state']})")
        for copy in partition["copies"]
    ]
    return [
        name,
        "none" if partition["leader"] == -1 else _id(partition["leader"]),
        _id(partition["leader_epoch"]),
        _ids(partition["replicas"]),
        _ids(partition["isr"]),
        _ids([*(partition["elr"] or ()), *(partition["last_known_elr"] or ())]),
        ", ".join(copies) or Cell("missing", _BAD),
        partition["log_start_offset"],
        partition["log_end_offset"],
        partition["lost_offsets"],
    ]


def _settings(settings: Settings) -> Iterator[ClusterTable]:
    features: list[list[Value]] = [[name, level] for name, level in settings["features"].items()]
    yield ClusterTable("Features", ["feature", "level"], features)
    configs = [
        *_configs("broker", settings["broker_configs"]),
        *_configs("group", settings["group_configs"]),
        *_configs("client metrics", settings["client_metrics_configs"]),
    ]
    yield ClusterTable("Dynamic configs", ["of", "name", "config", "value"], configs)
    yield ClusterTable(
        "Quotas",
        ["entity", "quota", "value"],
        [
            [
                ", ".join(f"{kind} {name or '(default)'}" for kind, name in one["entity"].items()),
                key,
                f"{value:g}",
            ]
            for one in settings["quotas"]
            for key, value in one["values"].items()
        ],
    )
    yield ClusterTable(
        "ACLs",
        ["resource", "name", "pattern", "principal", "host", "operation", "permission"],
        [
            [
                acl["resource_type"],
                acl["resource_name"],
                acl["pattern_type"],
                acl["principal"],
                acl["host"],
                acl["operation"],
                acl["permission_type"],
            ]
            for acl in settings["acls"]
        ],
    )
    yield ClusterTable(
        "SCRAM users",
        ["user", "mechanism", "iterations"],
        [[one["name"], one["mechanism"], one["iterations"]] for one in settings["scram_users"]],
    )
    yield ClusterTable(
        "Delegation tokens",
        ["token", "owner", "requester", "renewers", "expires", "at most until"],
        [
            [
                one["token_id"],
                one["owner"],
                one["requester"],
                ", ".join(one["renewers"]) or None,
                time_text(one["expiration_timestamp"]),
                time_text(one["max_timestamp"]),
            ]
            for one in settings["delegation_tokens"]
        ],
    )


def _configs(kind: str, configs: Configs) -> Iterator[list[Value]]:
    for name, values in sorted(configs.items()):
        for config, value in sorted(values.items()):
            yield [kind, name or "(default)", config, value]


def _groups(groups: Sequence[ClusterGroup]) -> Iterator[ClusterTable]:
    yield ClusterTable(
        "Groups",
        ["group", "type", "state", "members", "positions", "lag", "lost ahead", "out of range"],
        [
            [
                group["group"],
                group["type"],
                group["state"],
                len(group["members"]),
                len(group["positions"]),
                # One beyond the end of its log does not make up for the lag of others.
                sum(max(0, one["lag"] or 0) for one in group["positions"]),
                sum(one["lost_ahead"] or 0 for one in group["positions"]),
                sum(one["out_of_range"] for one in group["positions"]),
            ]
            for group in groups
        ],
    )
    positions = [(group["group"], one) for group in groups for one in group["positions"]]
    positions.sort(key=lambda pair: not _is_hurt(pair[1]))
    yield ClusterTable(
        "Positions",
        [
            "group",
            "partition",
            "offset",
            "log start",
            "log end",
            "lag",
            "delivered",
            "lost ahead",
            "out of range",
        ],
        [
            [
                group,
                f"{one['topic']}-{one['partition']}",
                one["offset"],
                one["log_start_offset"],
                one["log_end_offset"],
                one["lag"],
                None if one["share_state"] is None else deliveries(one["share_state"]["state_batches"]),
                _lost(one),
                Cell("yes", _BAD) if one["out_of_range"] else None,
            ]
            for group, one in positions
        ],
    )


def _is_hurt(position: Position) -> bool:
    return bool(position["out_of_range"] or position["lost_ahead"])


def _lost(position: Position) -> Value:
    """The lost offsets ahead, with the first range."""
    if not position["lost_ahead"]:
        return None if position["lost_ahead"] is None else "0"
    first, last = position["lost_ranges"][0]
    more = ", ..." if len(position["lost_ranges"]) > 1 else ""
    return Cell(f"{position['lost_ahead']:,} ({first}-{last}{more})", _BAD)


def _transactions(report: ClusterReport) -> Iterator[ClusterTable]:
    yield ClusterTable(
        "Transactions of the coordinator",
        ["transactional id", "producer", "state", "partitions"],
        [
            [
                one["transactional_id"],
                str(one["producer_id"]),
                one["state"],
                ", ".join(one["partitions"]) or None,
            ]
            for one in report["transactions"]
        ],
    )
    yield ClusterTable(
        "Open transactions in the logs",
        ["partition", "producer", "epoch", "first offset", "last offset", "last record", "known as", "hangs"],
        [
            [
                f"{one['topic']}-{one['partition']}",
                str(one["producer_id"]),
                str(one["producer_epoch"]),
                one["first_offset"],
                one["last_offset"],
                time_text(one["last_timestamp"]),
                one["transactional_id"],
                Cell("yes", _BAD) if one["hanging"] else None,
            ]
            for one in report["open_transactions"]
        ],
    )


def _id(number: int | None) -> str | None:
    """A number whose digits are not grouped."""
    return None if number is None else str(number)


def _ids(numbers: Sequence[int] | None) -> str | None:
    return ",".join(map(str, numbers)) or None if numbers is not None else None
