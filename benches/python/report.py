"""docs/benchmarks.md and its picture, from the figures of this run and of earlier ones."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import arrow_threads
import capture
import client_tables
import converting
import document
import floor_table
import internal_topics
import laboratory
import lake
import lines
import live_cpu
import loops
import picture
import python_read
import python_write
import queries
import rust_read
import rust_write
import schemas
import stores
import validate
from commits import HERE, Repository
from figures import Figure, Figures, Run
from floors import BEST_PEER, EQUAL_SIZE
from limits import LIMIT, MEMORY, share
from sources import SOURCES
from standing import Standing

HOW_TO_READ = f"""\
Every ratio is magicbyte's speed divided by the peer's, on the same bytes in the same run: above 1, magicbyte
is faster. It is the median of the turns' ratios, with (smallest..largest). A rate is a median, in million
records/s. A wide range means that the machine was busy: trust the narrow ones, and ignore differences of
less than a tenth. Do not compare rates of different runs or machines; ratios are roughly comparable.

- The work of reading, always with the **CRC check**: frame, CRC, decompress, every record, touch key and
  value. In Rust with `Records::visit` against kafka-clients and Go, with the iterator against other crates.
- The data: S1 is batches of 1000 records, each a 16 B key and 100 B of JSON; S2 adds 3 headers; S3 has 100
  records of 10 KiB a batch; S4 has 10 small ones. Seeded, written by kafka-clients, about 65 MB each.
- One core, pinned. CPU time of the working thread; in Python and Go of the process, because their collectors
  work for the reader. The JVM's compiler and collector are not counted, and it warms up for 3 s, which
  favours Java. No `target-cpu`: the same code as in the wheel.
- In turn: the Rust crates and magicbyte round by round in one process; the JVM (one for each file), Go and
  magicbyte's program process by process; Python loop by loop in one process. The best round of a turn
  counts, for all alike, because other load can only slow a round down. Each reader reuses what its API lets
  a user reuse, and allocates what it makes a user allocate. The crates get the records to write in their own
  structures before the clock starts.
- Each reader must find every record and byte of a set, and must refuse a copy with one flipped byte and a
  copy without its last batch. The other side reads what was written, record for record. A peer that fails is
  named under Runs, and the run continues.
- {BEST_PEER.capitalize()}: the one with the lowest ratio of all that were measured on that data; for
  writers, of those whose output size is within {EQUAL_SIZE:.0%} of ours.
- Not measured: ARM, machines without AVX-512, more than two cores, peers' networks and brokers."""


def now() -> Run:
    """A run that starts now, before anything is built."""
    commits = {part: HERE.head(sources) for part, sources in SOURCES.items()}
    return Run(f"{datetime.now(UTC):%Y-%m-%d %H:%M}", commits)


def publish(
    path: Path,
    run: Run,
    new: list[Figure],
    facts: list[str],
    sections: Mapping[str, str | None] | None = None,
    repository: Repository = HERE,
) -> None:
    """Adds new figures and sections, and rewrites the page, its figures and its picture."""
    stored = path.with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = Figures.load(stored)
    # The drop-ins' results are on a page of their own, so there may be no figures.
    if new:
        figures.put(new, run, facts)
    figures.save(stored)
    write(path, figures, Standing(repository), sections)


def write(
    path: Path, figures: Figures, standing: Standing, sections: Mapping[str, str | None] | None = None
) -> None:
    """The page and its picture."""
    path.with_suffix(".svg").write_text(picture.draw(figures, standing))
    own: dict[str, str | None] = {
        "Floors": floor_table.floor_table(figures, standing),
        "How to read this": HOW_TO_READ + LIMITS_INTRODUCED + floor_table.limit_table(),
        "Reading in Rust": against_peers(figures.of(rust_read.PART)),
        "Reading in Python": by_work(figures.of(python_read.PART)),
        "Two threads": THREADS + rows(figures.of(arrow_threads.PART)),
        "Queries": QUERY + rows(figures.of(queries.PART)),
        "Lines": LINES + rows(figures.of(lines.PART)),
        "Writing in Rust": rows(figures.of(rust_write.PART)),
        "Writing in Python": rows(figures.of(python_write.PART)),
        "Converting": CONVERT + rows(figures.of(converting.PART)),
        "Validating appends": VALIDATE + rows(figures.of(validate.PART)),
        "Laboratory": LABORATORY + rows(figures.of(laboratory.PART)),
        "Tables": rows(figures.of(lake.PART)),
        "Stores": STORES + rows(figures.of(stores.PART)),
        "Captures": CAPTURES + rows(figures.of(capture.PART)),
        "Internal topics": INTERNAL_TOPICS + rows(figures.of(internal_topics.PART)),
        "Schemas": SCHEMAS + rows(figures.of(schemas.PART)),
        "Clients": CLIENTS + rows(figures.of(client_tables.PART)),
        "Live": LIVE + rows(figures.of(live_cpu.PART)),
        "Runs": runs(figures),
    }
    document.update(path, own | dict(sections or {}), head(path))


LIMITS_INTRODUCED = """

The share of the limit is magicbyte's speed divided by that of the parts of the work that nobody can leave
out, each alone on the same bytes in the same run, one after the other in CPU time: `crc` of every batch
(CRC-32C; of magic 0 and 1 CRC-32), `decompress` and `compress` with one context and one buffer, `copy` of
what is written or of as many bytes as the columns have.

"""
QUERY = """\
`select count(*), sum(octet_length(value)) from log`, from the file to the answer, in CPU time: over
`PartitionLog` itself, and over a table of offset, timestamp, key and value made by aiokafka's loop. Then
with only the values on both sides, as one would write it for this query alone.

"""
SCHEMAS = """\
Keys and values to typed columns (`ColumnDecoder.decode`), in CPU time of one core; 5 fields take 36 bytes as
Avro. We take values with their framing, checked row by row, the others payloads of one schema without it.

"""
INTERNAL_TOPICS = """\
500,000 records of `__consumer_offsets`, in CPU time of one core: the offsets that they add up to, as
`offsets`, `serve` and `ingest` read them, and `dump`, with the start of its process.

"""
LINES = """\
Offset, timestamp, timestamp type, key and value of every record as JSON lines, from batches in memory, in CPU
time of one core: `records` without its start. Both sides read magicbyte's Arrow stream.

"""
LABORATORY = """\
`cost` is `stats --fields`, which counts the bytes of every field of every record, in CPU time; `verify`
reads the same log. `advise` is given 10 GB in many partitions, from the page cache, on all cores; it may
take two minutes and 1 GiB.

"""
STORES = f"""\
An S3 server (SeaweedFS) on this machine, each command in a process of its own. A proxy makes a slow link
of it: {stores.LINK}. `verify` in bytes of the log a second, against the link's rate. The bytes of the log
against those that were fetched: 1 means that each was fetched once. Memory is the peak of the whole process
with one task at a time; above 1, it is less than the bound. `s3 on this machine`: the job has one core, with
S3 as with files, and the server has the others; `on the same cores`: both share all.

"""
VALIDATE = """\
Batches as a producer sends them, one append each: CRC, the checks of every record (keys and values are not
touched), then offsets and leader epoch set in place, or the batch rewritten with another codec. The peer is
`isValid` of the batch and `LogValidator` of kafka-storage 4.3.1, as `UnifiedLog` calls them. Processes in
turn, CPU time.

"""
CAPTURES = """\
A client that fetches the set in version 11, the newest that tshark reads, as packets of an Ethernet, in CPU
time: `frames` finds requests and responses in them and decodes none, `records` decodes all messages and all
records in them, in Python, against `tshark -T fields -e kafka.message_value`.

"""
CLIENTS = """\
Whole clients with a real broker and one partition, in CPU time of the client's process: the example client
of docs/embedding.md, which has the microseconds and says how they were measured. Lists are `send_batch`; the
drop-ins are those of docs/dropins.md, in the same client with and without them.

"""
LIVE = """\
A topic of a real broker, read from its start to its end, in CPU time of the reading process: 2 M records of
112 bytes in one partition, by `PartitionLog`, with each key and value taken. Memory is what reading a `Log`
of 1,000 partitions (450 MB) adds to the process at its peak.

"""
THREADS = """\
`read_batches(...).to_arrow(threads=2)` against `threads=1`, by the clock, which other load disturbs. Then two
Python threads with half of the batches each, against one with all of them, by the CPU time of the busier
thread: other load does not disturb that, but it does not show waiting.

"""
CONVERT = """\
A task of `convert`, from gzip in magic 1 to zstd in magic 2: read, check, convert, write, sync. It is
compared with the codecs alone, on the same payloads with the same contexts, in CPU time. Then two threads
against one: by the CPU time of the busier thread, and by the clock, which other load disturbs.

"""


def head(path: Path) -> str:
    return f"""# Benchmarks

Written by `make bench`, which needs Rust, Java and Maven (and Go for two of the peers), and takes about 50
minutes including builds. `make bench QUICK=1` takes about 5 minutes, with fewer sets and turns.
`make bench-spark` is the part with a broker. What did not run keeps its earlier figures.
`{path.with_suffix(".json").name}` contains all of them.

![magicbyte's speed divided by its peers', with floors]({path.with_suffix(".svg").name})
"""


def against_peers(figures: list[Figure]) -> str:
    """One line per set, one column per peer."""
    if not figures:
        return "Not measured."
    peers = [peer for peer in PEERS if any(one.peer == peer for one in figures)]
    lines = [
        "Each cell has the peer's rate and the ratio.",
        "",
        f"| data | magicbyte | {' | '.join(peers)} | {SHARE} |",
        f"|---|---:|{'---:|' * (len(peers) + 1)}",
    ]
    for on in in_order(figures):
        found = {one.peer: one for one in figures if one.on == on}
        ours = next(found[peer] for peer in peers if peer in found)
        cells = [cell(found[peer], found[peer].peers) if peer in found else "" for peer in peers]
        cells.append(share_of(ours, figures))
        lines.append(f"| {picture.data(on)} | {millions(ours.ours)} | {' | '.join(cells)} |")
    return "\n".join(lines)


PEERS = ["kafka-clients", *rust_read.CRATES, *rust_read.GO, MEMORY.peer]


def by_work(figures: list[Figure]) -> str:
    """One line per set, one column per way of reading."""
    if not figures:
        return "Not measured."
    against_limits, figures = figures, [one for one in figures if one.peer != LIMIT]
    works = [loop.name for loop in loops.OURS if any(one.work == loop.name for one in figures)]
    lines = [
        "aiokafka's loop takes `key` and `value` as bytes. Each cell has magicbyte's rate and the ratio; "
        "then the share of the limit, where that was measured.",
        "",
        f"| data | aiokafka | {' | '.join(works)} |",
        f"|---|---:|{'---:|' * len(works)}",
    ]
    for on in in_order(figures):
        found = {one.work: one for one in figures if one.on == on}
        peers = next(iter(found.values())).peers
        cells = [
            cell(one, one.ours) + share_of(one, against_limits, "; {}") if (one := found.get(work)) else ""
            for work in works
        ]
        lines.append(f"| {picture.data(on)} | {millions(peers)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def rows(figures: list[Figure]) -> str:
    """One line per figure, without empty columns."""
    titles = ("work", "data", "against", "magicbyte", "peer", "ratio", SHARE, "size, ours / theirs")
    table = [
        (
            one.work,
            picture.data(one.on),
            one.peer,
            millions(one.ours),
            millions(one.peers),
            str(one),
            share_of(one, figures),
            "" if one.size is None else f"{one.size:.3f}",
        )
        for on in in_order(figures)
        for one in figures
        if one.on == on and one.peer != LIMIT
    ]
    if not table:
        return "Not measured."
    kept = [index for index in range(len(titles)) if any(line[index] for line in table)]
    ruler = "".join("---:|" if index > 2 else "---|" for index in kept)
    lines = [f"| {' | '.join(titles[index] for index in kept)} |", f"|{ruler}"]
    lines += [f"| {' | '.join(line[index] for index in kept)} |" for line in table]
    return "\n".join(lines)


SHARE = "share of the limit"


def share_of(one: Figure, figures: list[Figure], form: str = "{}") -> str:
    found = share(one, figures)
    return "" if found is None else form.format(f"{found.ratio:.2f}")


def runs(figures: Figures) -> str:
    """The machine and versions of each run, and which figures are older than the newest run."""
    newest = max(figures.runs)
    parts = []
    for run, facts in sorted(figures.runs.items(), reverse=True):
        measured = [one for one in figures.figures.values() if one.run == run]
        named = "".join(f"; {what}" for what in by_part(measured)) if run != newest else ""
        turns = sorted({one.turns for one in measured})
        counted = " to ".join(str(turn) for turn in sorted({turns[0], turns[-1]})) if turns else "no"
        head = f"**{run}**, {len(measured)} figures of {counted} turns{named}"
        parts.append(document.bullets(head, *facts))
    return "\n\n".join(parts)


def by_part(figures: list[Figure]) -> list[str]:
    """The data of each part."""
    parts = {part: [one for one in figures if one.part == part] for part in picture.PARTS}
    return [f"{part}: {', '.join(map(picture.data, in_order(of)))}" for part, of in parts.items() if of]


def in_order(figures: list[Figure]) -> list[str]:
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]

    def place(on: str) -> tuple[bool, str, int]:
        shape, _, codec = on.partition("-")
        return ("v1" in shape, shape, codecs.index(codec) if codec in codecs else 0)

    return sorted({one.on for one in figures}, key=place)


def cell(one: Figure, rate: float | None) -> str:
    return f"{millions(rate)}: {one}"


def millions(rate: float | None) -> str:
    return "" if rate is None else f"{rate / 1e6:.3g}"
