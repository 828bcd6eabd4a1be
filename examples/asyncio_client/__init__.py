"""A Kafka client: asyncio moves the bytes, magicbyte makes and reads them.

It has versions, leaders, reconnects, idempotence, transactions, every codec and `read_committed`.
docs/embedding.md explains it part by part, and says what a client still needs.

    PYTHONPATH=examples python -m asyncio_client 127.0.0.1:9092 TOPIC
"""

from .cluster import Client
from .consumer import Consumer, Fetched
from .errors import KafkaError, ProtocolError
from .producer import Producer

__all__ = ["Client", "Consumer", "Fetched", "KafkaError", "Producer", "ProtocolError"]
