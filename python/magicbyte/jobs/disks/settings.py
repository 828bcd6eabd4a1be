"""Configs, quotas, ACLs, users and tokens of a cluster. Secrets are in none of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypedDict, cast

from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.metadata.configs import BROKER, CLIENT_METRICS, GROUP

__all__ = [
    "AclReport",
    "Configs",
    "DelegationTokenReport",
    "Quota",
    "ScramUserReport",
    "Settings",
    "settings_of",
]

Configs = dict[str, dict[str, str]]
"""Configs by resource and name; secret values are `[hidden]`."""


class Quota(TypedDict):
    """The quotas of an entity."""

    entity: dict[str, str | None]
    """Names by entity type (`user`, `client-id` or `ip`); None for the default."""
    values: dict[str, float]
    """Values by key, such as `producer_byte_rate`."""


class AclReport(TypedDict):
    """An access control entry, in Kafka's names."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


class ScramUserReport(TypedDict):
    """A user with a SCRAM credential."""

    name: str
    mechanism: str
    iterations: int


class DelegationTokenReport(TypedDict):
    """A delegation token, without its HMAC. Times are ms since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


class Settings(TypedDict):
    """What was configured in the cluster."""

    features: dict[str, int]
    """Levels by feature, such as `metadata.version`."""
    broker_configs: Configs
    """Dynamic configs by broker id; of all brokers under the empty name. What their `server.properties` say
    is in no log."""
    group_configs: Configs
    client_metrics_configs: Configs
    quotas: list[Quota]
    acls: list[AclReport]
    scram_users: list[ScramUserReport]
    delegation_tokens: list[DelegationTokenReport]
    next_producer_id: int | None
    """The first producer id that no broker has been given."""


def settings_of(state: ClusterState) -> Settings:
    """What the cluster's metadata has of these."""
    acls = [cast(AclReport, asdict(acl)) for acl in state.security.acls.values()]
    users = [cast(ScramUserReport, asdict(user)) for user in state.security.scram_users.values()]
    return Settings(
        features=state.features,
        broker_configs=state.configs.of_type(BROKER),
        group_configs=state.configs.of_type(GROUP),
        client_metrics_configs=state.configs.of_type(CLIENT_METRICS),
        quotas=[
            Quota(entity=dict(entity), values=values) for entity, values in state.quotas.by_entity.items()
        ],
        acls=sorted(acls, key=lambda acl: tuple(map(str, acl.values()))),
        scram_users=sorted(users, key=lambda user: (user["name"], user["mechanism"])),
        delegation_tokens=[
            cast(DelegationTokenReport, {**asdict(token), "renewers": list(token.renewers)})
            for token in state.security.delegation_tokens.values()
        ],
        next_producer_id=state.next_producer_id,
    )
