"""The rule by which Kafka's coordinators share their keys among the partitions of their topics."""

from __future__ import annotations

__all__ = ["partition_of_key"]


def partition_of_key(key: str, partitions: int) -> int:
    """The partition, of `partitions`, of a group in `__consumer_offsets`, a transactional id in
    `__transaction_state` or a share-partition in `__share_group_state`: by Java's hash of the text
    (`partitionFor` of `GroupCoordinatorService`, `TransactionStateManager` and `ShareCoordinatorService`).
    """
    units = key.encode("utf-16-be", "surrogatepass")
    code = 0
    for unit in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[unit : unit + 2])) & 0xFFFFFFFF
    # `Utils.abs` has 0 for the smallest number.
    return (0 if code == 1 << 31 else min(code, (1 << 32) - code)) % partitions
