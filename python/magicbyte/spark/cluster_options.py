"""The options of Spark's Kafka source that name a running cluster and its security."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from magicbyte.spark.given import Given, OptionError

__all__ = ["CLUSTER_TABLES", "OF_SPARKS_SOURCE", "ClusterOptions", "cluster_options"]

_LOGGER = logging.getLogger("magicbyte.stream")
CLUSTER_TABLES = ("records", "batches", "problems")
"""The tables that can be read of a running cluster: the others are about files."""
_PREFIX = "kafka."
"""The prefix of properties of Kafka's clients."""
_SERVERS = "bootstrap.servers"
_ISOLATION = "isolation.level"
_PROTOCOL = re.compile(r"^(?!kafkas?:)[0-9a-zA-Z%._-]*://")
"""A protocol before an address, which Kafka's clients accept without effect. A URL of ours tells of TLS."""
_NO_GROUP = "this source joins no consumer group"
_RETRIES = "requests are repeated for a minute, and kafka.request.timeout.ms is the deadline of each"
OF_SPARKS_SOURCE = {
    "groupIdPrefix": _NO_GROUP,
    "kafka.group.id": _NO_GROUP,
    "kafkaConsumer.pollTimeoutMs": _RETRIES,
    "fetchOffset.numRetries": _RETRIES,
    "fetchOffset.retryIntervalMs": _RETRIES,
}
"""Options of Spark's source that a job may keep, and why they have no effect."""
_REFUSED = {
    "kafka.auto.offset.reset": "startingOffsets is where a query begins",
    "kafka.enable.auto.commit": "this source commits nothing: a stream has its offsets in its checkpoint",
    "kafka.key.deserializer": "keys are bytes, which keyAs and keyFormat decode",
    "kafka.value.deserializer": "values are bytes, which valueAs and valueFormat decode",
    "kafka.interceptor.classes": "Java's classes cannot be loaded here",
    "kafka.magicbyte.sasl.oauthbearer.token.command": "options may come from SQL text, which should start no "
    "programs: kafka.sasl.oauthbearer.token.endpoint.url names a file",
    "filterPushdown": "a cluster is read by offsets and times: see startingOffsets and startingTimestamp",
    "maxBytesPerTrigger": "a cluster does not tell the bytes of offsets: see maxOffsetsPerTrigger",
    "includeAboveHighWatermark": "a cluster sends no records above the high watermark",
    "includeDeletedRecords": "a cluster sends no records before the start of a log",
    "encryptionKey": "brokers decrypt tiered storage",
}
"""Options that have no meaning for a running cluster, with the reasons."""


@dataclass(frozen=True)
class ClusterOptions:
    """A running cluster."""

    bootstrap_servers: str
    """`host:port`, or several separated by commas."""
    properties: Mapping[str, str] = field(repr=False)
    """Properties of Kafka's clients, such as those of `security.protocol`. They have secrets."""


def cluster_options(given: Given) -> ClusterOptions | None:
    """The cluster that the options name; None if they name none.

    Raises:
        OptionError: for an option that has no meaning for a cluster, and for none that chooses topics.

    """
    properties = given.below(_PREFIX)
    listed = (part.strip() for part in properties.pop(_SERVERS, "").split(","))
    servers = ",".join(_PROTOCOL.sub("", part) for part in listed if part)
    if not servers:
        return None
    for name, reason in _REFUSED.items():
        if given.text(name) is not None:
            raise OptionError(f"{name} has no meaning for a running cluster: {reason}. Leave it out")
    if given.below("storage."):
        raise OptionError("storage. is for the stores of URLs, not for a running cluster")
    if not any(given.text(name) for name in ("subscribe", "subscribePattern", "assign")):
        raise OptionError("kafka.bootstrap.servers: subscribe, subscribePattern or assign is missing")
    for name, reason in OF_SPARKS_SOURCE.items():
        if given.text(name) is not None:
            _LOGGER.warning("%s has no effect: %s", name, reason)
    # The isolation level is an option of the query as well.
    properties.pop(_ISOLATION, None)
    return ClusterOptions(servers, properties)
