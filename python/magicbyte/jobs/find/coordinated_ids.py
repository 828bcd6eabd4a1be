"""The producer ids that the transaction coordinator has given to transactional ids."""

from __future__ import annotations

from collections.abc import Iterator

from magicbyte.errors import Error
from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import TRANSACTION_STATE
from magicbyte.log import PartitionLog

__all__ = ["coordinated_ids"]


def coordinated_ids(log: PartitionLog) -> Iterator[int]:
    """Yields the producer ids in the records of a partition of `__transaction_state`; -1 for none.

    Records that do not decode are passed over: they are damaged, or of a version of Kafka that is not known.
    """
    decoder = Decoder(TRANSACTION_STATE)
    for record in log.records():
        try:
            _, _, data = decoder.of_coordinator(record.key_bytes, record.value_bytes)
        except (LookupError, Error):
            continue
        if data is not None:
            yield data["producerId"]
            # The id that follows when the epochs of this one are used up (KIP-890).
            yield data.get("nextProducerId", -1)
