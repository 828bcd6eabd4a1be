"""The floors that magicbyte's speeds were promised to hold, and the figure that decides each."""

from dataclasses import dataclass

from figures import Figure, Figures

BEST_PEER = "the best peer"


@dataclass(frozen=True)
class Floor:
    """`issue` is the issue that asks for it."""

    issue: int
    part: str
    work: str
    on: str
    peer: str
    floor: float


def each(issue: int, part: str, work: str, peer: str, floors: dict[str, float]) -> list[Floor]:
    """One floor for each set of data."""
    return [Floor(issue, part, work, on, peer, floor) for on, floor in floors.items()]


# fmt: off
# Where two issues ask for the same comparison, this has the higher floor.
FLOORS = [
    # Reading.
    *each(3, "Read in Rust", "", "kafka-clients", {"s4-none": 1, "s4-snappy": 1}),
    *each(3, "Spark", "ingest", "the same job in threads", {"1000 MB": 0.7}),
    # Damage, and Spark against its own source.
    *each(4, "Segments", "verify", "no damage", {"50 bad batches": 0.5}),
    *each(4, "Spark", "ingest, wall", "Kafka source to Parquet", {"warm": 3.5}),
    *each(4, "Spark", "ingest, CPU", "Kafka source to Parquet", {"warm": 3}),
    *each(4, "Spark", "source, wall", "Kafka source", {"warm": 1.6}),
    *each(4, "Spark", "source, wall", "ready Arrow batches", {"warm": 0.7}),
    *each(4, "Spark", "whole command, wall", "Kafka source to Parquet", {"cold": 1.25}),
    # Writing.
    *each(5, "Write in Rust", "", BEST_PEER,
          {"s1-gzip": 1, "s1-snappy": 1, "s1-lz4": 1, "s1-zstd": 1, "s4-lz4": 1, "s4-zstd": 1}),
    *each(5, "Convert", "", "the codecs alone", {"gzip of magic 1 to zstd of magic 2": 0.8}),
    *each(5, "Convert", "", "one thread, CPU time", {"gzip of magic 1 to zstd of magic 2": 1.6}),
    # Speed.
    *each(6, "Read in Rust", "", "kafka-clients",
          {"s1-none": 2.4, "s2-none": 2.7, "s1-gzip": 2.4, "s1-snappy": 1.6, "s1-lz4": 1.45, "s1-zstd": 1.25,
           "s1v1-none": 3.3, "s1v1-gzip": 2.6, "s1v1-lz4": 1.8}),
    *each(6, "Read in Rust", "", "kafka-protocol", {"s1-none": 4.5, "s2-none": 8}),
    *each(6, "Read in Rust", "", "krabka-protocol iterator", {"s1-none": 1.0, "s2-none": 1.8}),
    *each(6, "Read in Rust", "", BEST_PEER, {"s4-gzip": 1.5, "s4-lz4": 1.4, "s4-zstd": 2.0}),
    *each(6, "Write in Rust", "", "kafka-clients",
          {"s1-none": 2.1, "s1-lz4": 1.05, "s1-zstd": 1.25, "s4-lz4": 4, "s4-zstd": 2.8}),
    *each(6, "Read in Python", "key and value as bytes", "aiokafka",
          {"s1-none": 2.1, "s1-gzip": 2.4, "s1-snappy": 1.35, "s1-lz4": 1.45, "s1-zstd": 1.3,
           "s2-none": 4.5, "s4-lz4": 3.2}),
    *each(6, "Read in Python", "key and value as memoryviews", "aiokafka", {"s1-none": 1.05}),
    *each(6, "Read in Python", "to Arrow, one stream", "aiokafka", {"s1-none": 6.8}),
    *each(6, "Two threads", "of a stream, clock", "one thread",
          {"s1-none": 1.3, "s1-gzip": 1.6, "s1-snappy": 1.6, "s1-lz4": 1.6, "s1-zstd": 1.6}),
    *each(6, "Write in Python", "append", "aiokafka", {"s1-none": 2.0}),
    *each(6, "Write in Python", "append_many", "aiokafka", {"s1-none": 3.4}),
    *each(6, "Write in Python", "append_arrow", "aiokafka", {"s1-none": 4.3}),
    # Either DuckDB or polars.
    *each(6, "Query", "DuckDB", "aiokafka into pyarrow", {"s1-none": 6}),
    *each(20, "Lines", "JSON lines", "polars write_ndjson", {"s1-none": 1.2}),
    *each(24, "Laboratory", "cost", "verify", {"s1-none": 0.7, "s1-zstd": 0.7, "s2-none": 0.7}),
    *each(24, "Laboratory", "advise, wall", "two minutes", {"10 GB": 1}),
    # What a broker does.
    *each(7, "Validate appends", "to producer", "LogValidator",
          {"s1-none": 2, "s2-none": 2, "s1-gzip": 1.2, "s1-snappy": 1.2, "s1-lz4": 1.2, "s1-zstd": 1.2,
           "s2-zstd": 1.2}),
    *each(23, "Tables", "ingest, wall", "plain Parquet", {"delta": 0.85, "iceberg": 0.85}),
    *each(23, "Stores", "verify", "the link", {"20 ms, 100 MB/s": 0.9}),
    # At most 1.02 times the bytes of the log.
    *each(23, "Stores", "ingest, bytes", "the bytes of the log", {"20 ms, 100 MB/s": 0.98}),
    *each(23, "Stores", "explain, bytes", "the bytes of the log", {"1 MiB batches": 10}),
    *each(23, "Stores", "ingest, memory", "256 MiB", {"20 ms, 100 MB/s": 1}),
    *each(23, "Stores", "ingest, wall", "the same job from files", {"s3 on this machine": 0.8}),
    *each(22, "Serving", "MB/s to Java", "broker", {"s1-none": 1, "s1-zstd": 1}),
    *each(22, "Serving", "MB/s to librdkafka", "broker", {"s1-none": 1, "s1-zstd": 1}),
    *each(22, "Serving", "CPU to Java", "broker", {"s1-none": 2, "s1-zstd": 2}),
    *each(22, "Serving", "CPU to librdkafka", "broker", {"s1-none": 2, "s1-zstd": 2}),
    *each(22, "Serving", "memory", "50 MiB", {"s1-none": 1, "s1-zstd": 1}),
    *each(22, "Serving", "ready", "a second", {"1000 partitions": 1}),
    *each(22, "Captures", "frames", "1 GB/s", {"s1-none": 1}),
    *each(22, "Captures", "records", "tshark", {"s1-none": 20}),
    *each(22, "Internal topics", "committed offsets", "10 M records a minute",
          {"10 commits a batch": 1, "1 commit a batch": 1}),
    *each(21, "Schemas", "Avro", "fastavro into pyarrow", {"5 fields": 20}),
    *each(21, "Schemas", "Avro", "one id", {"30 ids": 0.8}),
    *each(21, "Schemas", "Avro", "no damage", {"every 100th damaged": 0.7}),
    *each(35, "Schemas", "Avro", "as it was written",
          {"renamed fields": 0.7, "defaults": 0.7, "unions": 0.7}),
    *each(35, "Schemas", "Avro", "the latest version", {"30 versions": 0.8}),
    *each(21, "Schemas", "Protobuf", "ptars", {"5 fields": 1, "nested, repeated": 1}),
    *each(21, "Schemas", "JSON", "pyarrow.json", {"5 fields": 1}),
    *each(21, "Schemas", "JSON", "orjson into pyarrow", {"5 fields": 5}),
    *each(21, "Spark", "ingest of Avro, wall", "untyped ingest", {"5 fields": 0.7}),
    *each(21, "Spark", "source of Avro, wall", "Kafka source, from_avro", {"5 fields": 3}),
    *each(21, "Spark", "source of Avro, wall", "ready Arrow batches", {"5 fields": 0.7}),
    *each(7, "Compacting", "", "Kafka's cleaner",
          {"updates-none": 2, "updates-lz4": 2, "updates-zstd": 2, "distinct": 2}),
]
# fmt: on

# Output sizes within this fraction count as equal.
EQUAL_SIZE = 0.02


def judged(floor: Floor, figures: Figures) -> Figure | None:
    """The figure that decides; for the best peer, the one that is hardest to beat."""
    if floor.peer != BEST_PEER:
        return figures.figures.get((floor.part, floor.work, floor.on, floor.peer))
    peers = [
        one
        for one in figures.of(floor.part)
        if (one.work, one.on) == (floor.work, floor.on)
        and (one.size is None or abs(one.size - 1) <= EQUAL_SIZE)
    ]
    return min(peers, key=lambda one: one.ratio, default=None)
