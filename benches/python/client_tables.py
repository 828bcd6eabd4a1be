"""The figures of whole clients, and the tables of docs/embedding.md and docs/dropins.md made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from figures import Figure, Figures, figure
from ratios import Comparison
from sets import PROJECT

PART = "Clients"
CODECS = ("none", "lz4", "zstd")
WORKS = ("produce", "consume")
# By client, work and codec, the microseconds for each record in each turn.
Costs = dict[tuple[str, str, str], list[float]]

EXAMPLE, EXAMPLE_LISTS = "the example client, `send`", "the example client, `send_batch` and `to_arrow`"
CONFLUENT, CONFLUENT_POLL = "confluent-kafka, `consume`", "confluent-kafka, `poll`"
KAFKARROW = "kafkarrow"
AIOKAFKA, AIOKAFKA_DROPIN = "aiokafka", "aiokafka, drop-in"
KAFKA_PYTHON, KAFKA_PYTHON_DROPIN = "kafka-python", "kafka-python, drop-in"
# As the rows of the table.
NAMES = (
    EXAMPLE,
    EXAMPLE_LISTS,
    CONFLUENT,
    CONFLUENT_POLL,
    KAFKARROW,
    AIOKAFKA,
    AIOKAFKA_DROPIN,
    KAFKA_PYTHON,
    KAFKA_PYTHON_DROPIN,
)


@dataclass(frozen=True)
class Compared:
    """Work of a client of ours against the same of others, which the record book has by these names."""

    work: str
    name: str
    ours: str
    peers: dict[str, str]


ALIKE = {"aiokafka": AIOKAFKA, "kafka-python": KAFKA_PYTHON}
DROPINS = {"aiokafka": AIOKAFKA_DROPIN, "kafka-python": KAFKA_PYTHON_DROPIN}
RDKAFKA, RDKAFKA_POLL = "librdkafka", "librdkafka, one by one"
COMPARED = [
    Compared("produce", "produce, CPU", EXAMPLE, {RDKAFKA: CONFLUENT, **ALIKE}),
    Compared("produce", "produce lists, CPU", EXAMPLE_LISTS, {RDKAFKA: CONFLUENT}),
    Compared(
        "consume",
        "consume, CPU",
        EXAMPLE,
        {RDKAFKA: CONFLUENT, RDKAFKA_POLL: CONFLUENT_POLL, **ALIKE},
    ),
    Compared(
        "consume",
        "consume to Arrow, CPU",
        EXAMPLE_LISTS,
        {"kafkarrow": KAFKARROW, RDKAFKA: CONFLUENT},
    ),
    *(
        Compared(work, f"{work} with the drop-in, CPU", DROPINS[name], {name: original})
        for work in WORKS
        for name, original in ALIKE.items()
    ),
]


def figures_of(costs: Costs) -> Iterator[Figure]:
    """A figure for each comparison of clients that were measured, in records per second of CPU time."""
    for one in COMPARED:
        for peer, client in one.peers.items():
            for codec in CODECS:
                if (client, one.work, codec) in costs:
                    ours, theirs = (costs[name, one.work, codec] for name in (one.ours, client))
                    rates = Comparison([1e6 / cost for cost in ours], [1e6 / cost for cost in theirs])
                    yield figure(PART, one.name, codec, peer, rates)


def cost_table(figures: Figures) -> list[str]:
    """The microseconds of each client, from whatever comparison has them."""
    rates: dict[tuple[str, str, str], float | None] = {}
    for one in COMPARED:
        for peer, client in one.peers.items():
            for codec in CODECS:
                if found := figures.figures.get((PART, one.name, codec, peer)):
                    rates[one.ours, one.work, codec] = found.ours
                    rates[client, one.work, codec] = found.peers
    cells = {
        client: [rates.get((client, work, codec)) for work in WORKS for codec in CODECS] for client in NAMES
    }
    return _table(
        {
            client: [f"{1e6 / rate:.2f}" if rate else "" for rate in found]
            for client, found in cells.items()
            if any(found)
        }
    )


def dropin_table(figures: Figures) -> list[str]:
    """The CPU time of whole clients divided by that with their drop-ins."""
    keys = {
        client: [(PART, f"{work} with the drop-in, CPU", codec, client) for work in WORKS for codec in CODECS]
        for client in DROPINS
    }
    ratios = {client: [figures.figures.get(key) for key in found] for client, found in keys.items()}
    return _table(
        {client: [f"{one.ratio:.2f}" if one else "" for one in row] for client, row in ratios.items()}
    )


def _table(rows: dict[str, list[str]]) -> list[str]:
    heads = [f"{work} {codec}" for work in WORKS for codec in CODECS]
    lines = [f"| client | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    return lines + [f"| {client} | {' | '.join(cells)} |" for client, cells in rows.items()]


TABLES: dict[str, Callable[[Figures], list[str]]] = {"embedding.md": cost_table, "dropins.md": dropin_table}


def with_table(page: str, lines: list[str]) -> str:
    """Puts a table between the marks of a page."""
    before, rest = page.split("<!-- clients -->\n")
    after = rest[rest.index("<!-- /clients -->") :]
    return "\n".join([before + "<!-- clients -->", *lines, after])


def write_pages(figures: Figures) -> None:
    for name, table in TABLES.items():
        page = PROJECT / "docs" / name
        page.write_text(with_table(page.read_text(), table(figures)))
