"""The messages of `__transaction_state`: key and value by the type at the start of the key."""

from __future__ import annotations

from magicbyte.internal_topics.schema import Field, Message

__all__ = ["TRANSACTIONS"]

TRANSACTIONS = {
    0: (
        Message("TransactionLogKey", (Field("transactionalId", "string"),)),
        Message(
            "TransactionLogValue",
            (
                Field("producerId", "int64"),
                Field("previousProducerId", "int64", since=1, tag=0, default=-1),
                Field("nextProducerId", "int64", since=1, tag=1, default=-1),
                Field("producerEpoch", "int16"),
                Field("nextProducerEpoch", "int16", since=1, tag=3, default=-1),
                Field("transactionTimeoutMs", "int32"),
                Field("transactionStatus", "int8"),
                Field(
                    "transactionPartitions",
                    "[]struct",
                    (Field("topic", "string"), Field("partitionIds", "[]int32")),
                    nullable=0,
                ),
                Field("transactionLastUpdateTimestampMs", "int64"),
                Field("transactionStartTimestampMs", "int64"),
                Field("clientTransactionVersion", "int16", since=1, tag=2),
            ),
            last_version=1,
            flexible=1,
        ),
    )
}
