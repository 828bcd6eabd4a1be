"""A broker's treatment of an append: used by `magicbyte.broker`."""

from typing import Self, final

from typing_extensions import Buffer

# The fields of `magicbyte.broker.AppendInfo` after the records.
_AppendInfo = tuple[int | None, int, int, int, int | None, int, int]

@final
class AppendValidatorCore:
    """`magicbyte.broker.AppendValidator` without its dataclasses: the config is a mapping of all fields."""

    def __new__(cls, config: dict[str, int | bool | None]) -> Self: ...
    def validate(
        self, records: Buffer, origin_number: int, next_offset: int, leader_epoch: int, now: int
    ) -> tuple[bytes, _AppendInfo] | None:
        """The stored batches, and the other fields of `AppendInfo`; None if there is no complete batch.

        Raises:
            AppendError: The append is refused.
        """

def check_produce_request(records: Buffer, version: int) -> None:
    """The checks on a produce request's records that a broker makes before a partition sees them.

    Raises:
        AppendError: The request is refused.
    """

@final
class PartitionSimulatorCore:
    """`magicbyte.broker.PartitionSimulator` without its dataclasses.

    Appends return the fields of `AppendInfo` after the records, and whether the batch is a duplicate.
    The methods that read or change the log raise AppendError, except `elect_leader`.
    """

    def __new__(cls, config: dict[str, int | bool | None]) -> Self: ...
    def produce(self, records: Buffer, version: int) -> tuple[_AppendInfo, bool]:
        """Appends the records of a produce request of this version of the API."""

    def append(self, records: Buffer, origin_number: int) -> tuple[_AppendInfo, bool]:
        """Appends batches of this origin."""

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> tuple[_AppendInfo, bool]:
        """Appends a transaction marker."""

    def fetch(
        self, offset: int, max_bytes: int, isolation_level: str
    ) -> tuple[bytes, int, int, int, list[tuple[int, int, int]]]:
        """Records, high watermark, last stable offset, log start offset, aborted transactions.

        An aborted transaction is (producer id, first offset, last offset (inclusive)).
        """

    def list_offset(self, timestamp: int, isolation_level: str) -> tuple[int, int, int] | None:
        """Timestamp, offset, leader epoch; -1 is the latest, -2 the earliest, -3 the largest timestamp."""

    def elect_leader(self) -> int: ...
    def truncate(self, offset: int) -> None: ...
    def delete_records(self, before_offset: int) -> int: ...
    def producers(
        self,
    ) -> list[tuple[int, int, int, int, int | None, list[tuple[int, int, int, int, int]]]]:
        """The state of each producer: see `ProducerStateManagerCore.producers`."""

    def set_now(self, now: int) -> None: ...
    @property
    def now(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
