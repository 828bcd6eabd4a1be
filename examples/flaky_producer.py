"""Tests an idempotent producer against a network that loses every third response, without a broker.

python examples/flaky_producer.py
"""

import random

import magicbyte
from magicbyte.broker import AppendError, PartitionSimulator

random.seed(7)
partition = PartitionSimulator(clock=1_700_000_000_000)
duplicates = 0


def send(payload: bytes) -> int:
    """Sends a request over the network, which loses a third of the requests and a third of the responses."""
    global duplicates
    if random.random() < 1 / 3:
        raise TimeoutError
    answer = partition.append(payload)
    duplicates += answer.is_duplicate
    if random.random() < 1 / 3:
        raise TimeoutError
    return answer.base_offset


def produce(sequence: int) -> None:
    """The producer under test: sends a batch of two records until the broker confirms it."""
    builder = magicbyte.RecordsBuilder(producer_id=1, producer_epoch=0, base_sequence=sequence)
    for index in range(2):
        builder.append(index, partition.clock, b"key", f"record {sequence + index}".encode())
    payload = builder.build()
    while True:
        try:
            send(payload)
            return
        except TimeoutError:
            partition.advance(100)


for number in range(100):
    produce(2 * number)

stored = [
    record.value_bytes for batch in magicbyte.read_batches(partition.fetch(0).records) for record in batch
]
assert stored == [f"record {number}".encode() for number in range(200)]
print(f"{len(stored)} records, each once and in order; {duplicates} duplicate batches were recognised")

try:
    produce(300)
except AppendError as error:
    print(f"a gap: {error}")
