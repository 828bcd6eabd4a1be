"""Which subject the schema of a record belongs to: the strategies of Confluent's serializers.

>>> subject_name("TopicNameStrategy", "orders")
'orders-value'
>>> subject_name("TopicRecordNameStrategy", "orders", "shop.Order")
'orders-shop.Order'
"""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["Strategy", "subject_name"]

Strategy = Literal["TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"]
"""Named as Confluent's classes are."""


def subject_name(
    strategy: Strategy, topic: str, record_name: str | None = None, *, is_key: bool = False
) -> str:
    """The subject for keys or values of a topic.

    Args:
        strategy: one of `Strategy`; a client's default is `TopicNameStrategy`.
        topic: the topic.
        record_name: the full name of the record or message, or the title of a JSON Schema. The topic's
            strategy needs none.
        is_key: whether it is a key; only the topic's strategy tells keys and values apart.

    Raises:
        ValueError: if the strategy is unknown, or needs a record's name.

    """
    if strategy not in get_args(Strategy):
        raise ValueError(
            f"the strategy {strategy!r} is unknown: expected one of {', '.join(get_args(Strategy))}"
        )
    if strategy == "TopicNameStrategy":
        return f"{topic}-{'key' if is_key else 'value'}"
    if not record_name:
        raise ValueError(f"{strategy} needs the name of the record")
    return record_name if strategy == "RecordNameStrategy" else f"{topic}-{record_name}"
