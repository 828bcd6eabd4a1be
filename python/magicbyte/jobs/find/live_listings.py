"""Partitions of running clusters, listed: the offsets, leader epochs and ids that their brokers tell.

A listing is of one moment, as that of a directory is. What a job reads ends at its high watermarks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.lineage import EpochStart, LogLineage, divergence
from magicbyte.jobs.find.partitions import Inputs, find_inputs
from magicbyte.listing import LivePartitionListing, high_watermark_of
from magicbyte.live import ConfigFile, chosen_partitions, open_cluster, split_sources
from magicbyte.message.api_keys import ApiKeys
from magicbyte.model import Place
from magicbyte.storage.location import ClusterUrl, cluster_of

__all__ = ["ChangedLogError", "find_sources", "list_live_partitions", "refuse_changed"]


class ChangedLogError(JobError):
    """The log of a partition became another one while a job was fetching it: another job may succeed."""


def find_sources(sources: Sequence[str], command_config: ConfigFile, choice: PartitionChoice) -> Inputs:
    """Finds and lists what a job reads: distinct partitions in files, and those of running clusters.

    Raises:
        RefusedError: as `find_inputs` and `open_cluster`, if a cluster has no chosen partition, or a
            partition is found twice.
        OSError: if a source cannot be listed, or a cluster does not answer or refuses.

    """
    files, clusters = split_sources(sources, command_config)
    # A partition that several URLs name is one, as is a directory.
    live = {one["path"]: one for url in clusters for one in list_live_partitions(url, command_config, choice)}
    inputs = find_inputs(files, choice, distinct=True, assigned=True, may_be_none=bool(live))
    listings = [*inputs.listings, *live.values()]
    paths: dict[Place, str] = {}
    for listing in listings if live else ():
        place = listing["topic"], listing["partition"]
        if (other := paths.setdefault(place, listing["path"])) != listing["path"]:
            raise RefusedError(f"{place[0]}-{place[1]} is found twice: {other} and {listing['path']}")
    return replace(inputs, listings=listings)


def list_live_partitions(
    url: ClusterUrl, command_config: ConfigFile, choice: PartitionChoice
) -> list[LivePartitionListing]:
    """Lists the chosen partitions that a URL names, in the order of topics and partitions.

    Raises:
        RefusedError: if there is none, or an address or property is invalid.
        OSError: if the cluster does not answer or refuses.

    """
    cluster = open_cluster(url.cluster, command_config)
    _, _, topics = cluster.metadata()
    there = [(topic, partition) for topic, _, replicas in topics for partition in replicas]
    config = None if command_config is None else os.path.abspath(os.fsdecode(command_config))
    return _list(cluster, url, config, chosen_partitions(url, there, choice.includes))


def refuse_changed(listings: Sequence[LivePartitionListing]) -> None:
    """Refuses what was fetched since partitions were listed if their logs are not the same any more.

    Raises:
        ChangedLogError: a log was truncated, or the topic was created again.
        OSError: as `list_live_partitions`.

    """
    by_cluster: dict[tuple[str, str | None], list[LivePartitionListing]] = {}
    for listing in listings:
        url = _url(listing)
        by_cluster.setdefault((url.cluster, listing["command_config"]), []).append(listing)
    for (name, command_config), own in by_cluster.items():
        cluster = open_cluster(name, command_config)
        there = {(topic, partition) for topic, _, replicas in cluster.metadata()[2] for partition in replicas}
        places = [(listing["topic"], listing["partition"]) for listing in own]
        if gone := [place for place in places if place not in there]:
            raise ChangedLogError(f"{name}: {gone[0][0]}-{gone[0][1]} was deleted while it was read")
        for before, now in zip(own, _list(cluster, _url(own[0]), command_config, places), strict=True):
            end = high_watermark_of(before)
            if (found := divergence(_log(before).before(end), end, _log(now))) is not None:
                raise ChangedLogError(f"{before['path']} has changed while it was read: {found}")


def _log(listing: LivePartitionListing) -> LogLineage:
    epochs = tuple(EpochStart(one["epoch"], one["start_offset"]) for one in listing["leader_epochs"])
    return LogLineage(listing["topic_id"], listing["cluster_id"], epochs, high_watermark_of(listing))


def _url(listing: LivePartitionListing) -> ClusterUrl:
    url = cluster_of(listing["path"])
    assert url is not None, listing["path"]
    return url


def _list(
    cluster: _core.ClusterReader, url: ClusterUrl, command_config: str | None, places: Sequence[Place]
) -> list[LivePartitionListing]:
    # In this order: epochs that begin meanwhile have no record before the end, and what is stable stays so.
    cluster_id, brokers, topics = cluster.metadata()
    topic_ids = {topic: topic_id for topic, topic_id, _ in topics}
    sizes = _sizes(cluster, brokers, places)
    epochs = cluster.leader_epochs(places)
    stable = cluster.offsets(places, "read_committed")
    offsets = cluster.offsets(places, "read_uncommitted")
    return [
        LivePartitionListing(
            path=url.of(*place),
            topic=place[0],
            partition=place[1],
            state="current",
            checkpoints={"log_start_offset": start, "recovery_point": None, "high_watermark": end},
            include_deleted_records=False,
            segments=[],
            sidecars=[],
            ignored=[],
            leader_epochs=[{"epoch": epoch, "start_offset": begin} for epoch, begin in of_leader],
            problems=[],
            command_config=command_config,
            topic_id=topic_ids.get(place[0]),
            cluster_id=cluster_id,
            last_stable_offset=last_stable,
            size=sizes.get(place, 0),
        )
        for place, of_leader, (_, last_stable), (start, end) in zip(
            places, epochs, stable, offsets, strict=True
        )
    ]


def _sizes(
    cluster: _core.ClusterReader, brokers: Iterable[int], places: Collection[Place]
) -> dict[Place, int]:
    """The bytes of the largest replicas, by which work is divided. Without the right to know (DESCRIBE on the
    cluster), nothing.
    """
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    asked = [{"topic": topic, "partitions": partitions} for topic, partitions in topics.items()]
    found: dict[Place, int] = {}
    for broker in brokers:
        try:
            described = cluster.describe(ApiKeys.DESCRIBE_LOG_DIRS, {"topics": asked}, broker)
        except OSError:
            continue
        for log_dir in described["results"]:
            for topic in log_dir["topics"]:
                for partition in topic["partitions"]:
                    place = topic["name"], partition["partitionIndex"]
                    found[place] = max(found.get(place, 0), partition["partitionSize"], 0)
    return found
