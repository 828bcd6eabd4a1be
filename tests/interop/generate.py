"""Batches as Kafka builds them: all magics, codecs, levels and kinds of fields, from a seed."""

from __future__ import annotations

import random
import struct

LEVELS = {
    "none": ["-"],
    "gzip": ["-", "1", "9"],
    "snappy": ["-"],
    "lz4": ["-", "1", "17"],
    "zstd": ["-", "-5", "1", "19"],
}
EDGES = [0, 1, 63, 64, 127, 128, 8191, 8192]


def _content(rng: random.Random, null: float, large: float) -> str:
    if rng.random() < null:
        return "~"
    size = rng.choice([0, 1, 5, 63, 64, 100, rng.randrange(300)])
    if rng.random() < large:
        size = rng.choice([8191, 8192, 70_000])
    return (rng.randbytes(size) if rng.random() < 0.5 else bytes([rng.randrange(256)]) * size).hex()


def _headers(rng: random.Random, large: float) -> str:
    if rng.random() < 0.6:
        return ""
    names = ["", "a", "a", "trace-id", "käse", "x" * 70]
    count = rng.choices([1, 2, 3, 70], [10, 10, 10, 1])[0]
    return "".join(f",{rng.choice(names).encode().hex()},{_content(rng, 0.3, large)}" for _ in range(count))


def request(rng: random.Random) -> str:
    """A line for the builder: one batch, or the messages of a magic below 2."""
    if rng.random() < 0.05:
        kind = rng.choice(["ABORT", "COMMIT"])
        return f"marker {kind} {rng.randrange(1 << 40)} {rng.randrange(1 << 41)} {rng.randrange(1 << 33)} 3 7 {rng.choice(EDGES)}"
    magic = rng.choice([0, 1, 2, 2, 2])
    codec = rng.choice(list(LEVELS) if magic == 2 else ["none", "gzip", "snappy", "lz4"])
    stamp = rng.choice(["CreateTime", "CreateTime", "LogAppendTime"])
    # Kafka's builder accepts either timestamp type for magic 0, which has no timestamps.
    stamp = "NoTimestampType" if magic == 0 else stamp
    base = rng.choice([0, 0, 5, 1 << 31, (1 << 62) + 1, rng.randrange(1 << 40)])
    append_time = 1_700_000_000_000 if stamp == "LogAppendTime" else -1
    pid, epoch, sequence, transactional, horizon = -1, -1, -1, "false", -1
    if magic == 2 and rng.random() < 0.4:
        pid, epoch = rng.randrange(1 << 40), rng.randrange(1 << 15)
        sequence = rng.choice([0, 7, (1 << 31) - 1, (1 << 31) - 2])
        transactional = rng.choice(["true", "false"])
    if magic == 2 and rng.random() < 0.1:
        horizon = rng.randrange(1 << 41)
    words = [
        str(w)
        for w in (base, append_time, pid, epoch, sequence, transactional, rng.choice([-1, 0, 9]), horizon)
    ]
    records = []
    offset = base
    count = rng.choice([1, 1, 2, 3, 10, 70, 200])
    # Some batches have large contents, but few of them: several megabytes are no other case.
    large = 0.1 / count
    for _ in range(count):
        time = rng.choice([-1, 0, 1, rng.randrange(1 << 41), rng.randrange(1 << 62)])
        headers = _headers(rng, large) if magic == 2 else ""
        records.append(f"{offset},{time},{_content(rng, 0.3, large)},{_content(rng, 0.2, large)}{headers}")
        # Compaction leaves gaps; message sets of magic 0 and 1 may have them, too.
        offset += rng.choice([1, 1, 1, 2, 64, 9000]) if rng.random() < 0.2 else 1
    return " ".join(["build", str(magic), codec, rng.choice(LEVELS[codec]), stamp, *words, *records])


def control_request(rng: random.Random) -> str:
    """A line for the builder: a batch of control records; some keys are not those of control records."""
    magic = rng.choice([1, 2, 2, 2, 2, 2, 2, 2])
    codec = rng.choice(["none", "none", "snappy", "lz4"])
    base = rng.randrange(1 << 40)
    producer = rng.choice([(-1, -1, "false"), (rng.randrange(1 << 40), rng.randrange(1 << 15), "true")])
    pid, epoch, transactional = producer if magic == 2 else (-1, -1, "false")
    records = []
    for offset in range(base, base + rng.choice([1, 1, 2, 5])):
        key = struct.pack(">hh", rng.choice([0, 0, 0, 1]), rng.randrange(7)) + rng.choice([b"", b"", b"more"])
        if rng.random() < 0.05:
            odd = [
                b"",
                b"\0\0",
                b"\0\0\0",
                struct.pack(">hh", 0, -1),
                struct.pack(">hh", 0, 7),
                b"\xff\xff\0\1",
            ]
            key = rng.choice(odd)
        value = struct.pack(">hi", 0, rng.randrange(1 << 31)) + rng.randbytes(rng.choice([0, 0, 40]))
        records.append(f"{offset},{rng.randrange(1 << 41)},{key.hex()},{value.hex()}")
    horizon = rng.choice([-1, -1, 5]) if magic == 2 else -1
    words = ["control", magic, codec, "-", "CreateTime", base, -1, pid, epoch, -1, transactional, 3, horizon]
    return " ".join(map(str, [*words, *records]))


def twisted(rng: random.Random, line: str) -> str:
    """The request with a combination that Kafka may forbid."""
    words = line.split(" ")
    if words[0] != "build":
        return line
    offset, time, key, value, *headers = rng.choice(words[13:]).split(",")
    base = int(words[5])

    def record(offset: int | str, time: int | str = time, *more: str) -> None:
        words.append(",".join(map(str, [offset, time, key, value, *headers, *more])))

    twists = {
        "codec": lambda: words.__setitem__(2, "zstd"),
        "magic": lambda: words.__setitem__(1, rng.choice("012")),
        "no type": lambda: words.__setitem__(4, "NoTimestampType"),
        "producer": lambda: words.__setitem__(slice(7, 10), ["4711", "3", "0"]),
        "no producer": lambda: words.__setitem__(7, "-1"),
        "no epoch": lambda: words.__setitem__(8, "-1"),
        "no sequence": lambda: words.__setitem__(9, "-1"),
        "transactional": lambda: words.__setitem__(10, "true"),
        "horizon": lambda: words.__setitem__(12, "5"),
        "base": lambda: words.__setitem__(5, str(base + rng.choice([-1, 1]))),
        "offset": lambda: record(offset),
        "far": lambda: record(base + (1 << 31) - rng.choice([0, 1])),
        "timestamp": lambda: record(int(words[-1].split(",")[0]) + 1, rng.choice([-1, -2, -(1 << 40)])),
        "header": lambda: record(int(words[-1].split(",")[0]) + 1, time, "61", "~"),
        "null header key": lambda: record(int(words[-1].split(",")[0]) + 1, time, "~", "61"),
    }
    for twist in rng.sample(list(twists.values()), rng.choice([1, 1, 2])):
        twist()
    # A level is valid for one codec only.
    words[3] = "-"
    return " ".join(words)
