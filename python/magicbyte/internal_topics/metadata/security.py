"""ACLs, SCRAM users and delegation tokens (`AclsDelta`, `ScramDelta`, `DelegationTokenDelta`).

Salts, keys and HMACs are never decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Acl", "DelegationToken", "ScramUser", "SecurityState"]

_RESOURCE_TYPES = (
    "UNKNOWN",
    "ANY",
    "TOPIC",
    "GROUP",
    "CLUSTER",
    "TRANSACTIONAL_ID",
    "DELEGATION_TOKEN",
    "USER",
)
_PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS = (
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)
_PERMISSION_TYPES = ("UNKNOWN", "ANY", "DENY", "ALLOW")
_MECHANISMS = ("UNKNOWN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Acl:
    """An access control entry, in Kafka's names."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


@dataclass(frozen=True)
class ScramUser:
    """A user with a SCRAM credential."""

    name: str
    mechanism: str
    iterations: int


@dataclass(frozen=True)
class DelegationToken:
    """A delegation token, without its HMAC. Times are ms since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


class SecurityState:
    """ACLs by id, credentials by user and mechanism, and tokens by id."""

    def __init__(self) -> None:
        self.acls: dict[str, Acl] = {}
        self.scram_users: dict[tuple[str, int], ScramUser] = {}
        self.delegation_tokens: dict[str, DelegationToken] = {}

    def replay(self, name: str, data: dict[str, Any]) -> None:
        """Applies a record of these kinds; records of other types change nothing."""
        match name:
            case "ACCESS_CONTROL_ENTRY_RECORD":
                self.acls[data["id"]] = Acl(
                    _named(_RESOURCE_TYPES, data["resourceType"]),
                    data["resourceName"],
                    _named(_PATTERN_TYPES, data["patternType"]),
                    data["principal"],
                    data["host"],
                    _named(_OPERATIONS, data["operation"]),
                    _named(_PERMISSION_TYPES, data["permissionType"]),
                )
            case "REMOVE_ACCESS_CONTROL_ENTRY_RECORD":
                self.acls.pop(data["id"], None)
            case "USER_SCRAM_CREDENTIAL_RECORD":
                self.scram_users[data["name"], data["mechanism"]] = ScramUser(
                    data["name"], _named(_MECHANISMS, data["mechanism"]), data["iterations"]
                )
            case "REMOVE_USER_SCRAM_CREDENTIAL_RECORD":
                self.scram_users.pop((data["name"], data["mechanism"]), None)
            case "DELEGATION_TOKEN_RECORD":
                self.delegation_tokens[data["tokenId"]] = DelegationToken(
                    data["tokenId"],
                    data["owner"],
                    data["requester"],
                    tuple(data["renewers"]),
                    data["issueTimestamp"],
                    data["maxTimestamp"],
                    data["expirationTimestamp"],
                )
            case "REMOVE_DELEGATION_TOKEN_RECORD":
                self.delegation_tokens.pop(data["tokenId"], None)


def _named(names: tuple[str, ...], code: int) -> str:
    """The name of a code; a code of a later version of Kafka is unknown."""
    return names[code] if 0 <= code < len(names) else names[0]
