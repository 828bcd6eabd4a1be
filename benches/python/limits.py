"""The limits of rates: the parts of the work that nobody can leave out, each alone on the same bytes in the
same run, by `benches/rust/src/bin/limits.rs`. `LIMITS` has one for each row, or says why not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

import programs
from figures import Figure
from programs import NAMES, Program
from sets import Set

# The peer of a figure that is such a share.
LIMIT = "its limit"


@dataclass(frozen=True)
class Limit:
    """Parts of the work, one after the other; or, where a bench compares with its limit anyway, that peer."""

    parts: tuple[str, ...] = ()
    peer: str = LIMIT

    @property
    def name(self) -> str:
        return " + ".join(self.parts) or self.peer

    def program(self, of: Set, codec_of_output: str = "none") -> Program:
        """A peer whose rate is that of all the parts, for a set; builds the program at the first call."""
        idle = {
            part
            for part, codec in (("decompress", of.codec), ("compress", codec_of_output))
            if codec == "none"
        }
        parts = tuple(part for part in self.parts if part not in idle)
        return LimitProgram(parts, [built(), NAMES, codec_of_output], 0.05, peer=self.peer)

    def way(self, of: Set, codec_of_output: str = "none") -> Callable[[], float]:
        """One round of it, to be taken in turn with loops in Python."""
        program = replace(self.program(of, codec_of_output), rounds=1)
        return lambda: program.rates(of)[self.peer]


@dataclass(frozen=True)
class LimitProgram(Program):
    peer: str = LIMIT

    def rates(self, of: Set) -> dict[str, float]:
        """One rate, since the parts follow each other."""
        return {self.peer: 1 / sum(1 / rate for rate in super().rates(of).values())}


@cache
def built() -> str:
    return str(programs.ours("limits"))


# What the fastest reader of memory reaches, beside what reading a batch takes.
MEMORY = Limit(("read",), peer="a plain read")
# Peers that are no libraries.
BARE = (LIMIT, MEMORY.peer)
READING = Limit(("crc", "decompress"))
COLUMNS = Limit((*READING.parts, "copy of columns"))
BUILDING = Limit(("compress", "crc of output", "copy of output"))
REWRITING = Limit((*READING.parts, *BUILDING.parts))

ITSELF = "It is compared with magicbyte itself."
PROMISED = "It is compared with a promised rate, whose work is not the bytes alone."
SYSTEMS = "Sockets, disks and other processes take most of the time."
VALUES = "What a value costs depends on its format and its schema: the peers are the measure."

# By part and work; "*" is any other work of the part.
LIMITS: dict[str, dict[str, Limit | str]] = {
    "Read in Rust": {"": READING},
    "Read in Python": {
        "key and value as bytes": READING,
        "key and value as memoryviews": READING,
        "to Arrow, a batch each": COLUMNS,
        "to Arrow, one stream": COLUMNS,
    },
    "Two threads": {"*": ITSELF},
    "Query": {
        "*": READING,
        "polars, the last 1000 offsets": "It need not read the batches before them.",
    },
    "Lines": {"*": "Writing text takes most of the time, and has no least work that could be timed alone."},
    "Write in Rust": {"": BUILDING},
    "Write in Python": {"*": BUILDING},
    "Convert": {
        "": Limit(peer="the codecs alone"),
    },
    "Segments": {"header scan": Limit(peer="a plain read"), "verify": ITSELF},
    "Validate appends": {"to producer": READING, "*": REWRITING},
    "Compacting": {"": "Two passes over the log and a table of its keys have no least work to time alone."},
    "Laboratory": {"cost": READING, "*": PROMISED},
    "Tables": {"*": ITSELF},
    "Stores": {"verify": Limit(peer="the link"), "*": SYSTEMS},
    "Serving": {"*": SYSTEMS},
    "Captures": {"*": PROMISED},
    "Internal topics": {"*": PROMISED},
    "Schemas": {"*": VALUES},
    "Spark": {"*": SYSTEMS},
    "Live": {"*": SYSTEMS},
    "Backup": {"*": SYSTEMS},
    "Replicas": {"cluster, wall": PROMISED, "*": ITSELF},
    "Clients": {"*": SYSTEMS},
}


def declared(part: str, work: str) -> Limit | str:
    """The limit of a row, or why it has none."""
    works = LIMITS[part]
    return works[work] if work in works else works["*"]


def limit_of(part: str, work: str) -> Limit:
    """The limit of a row that has one."""
    limit = declared(part, work)
    if isinstance(limit, str):
        raise ValueError(f"{part}, {work} has no limit: {limit}")
    return limit


def share(one: Figure, figures: Iterable[Figure]) -> Figure | None:
    """The figure of the same work against its limit, if the same run has measured it."""
    limit = declared(one.part, one.work)
    if isinstance(limit, str):
        return None
    wanted = (one.part, one.work, one.on, limit.peer)
    return next((other for other in figures if other.key == wanted and other.run == one.run), None)
