"""`magicbyte advise`: what it predicts is what `magicbyte convert` writes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pytest
from browser import chromium, opened
from conftest import KAFKA, Cli
from magicbyte.cli.advice_text import remarks_of
from magicbyte.jobs.advise import GOALS, LAYOUTS, THOROUGH, AdviseReport, Layout, advise
from magicbyte.jobs.run.engines import Engine, LocalEngine, SparkEngine
from magicbyte.jobs.run.sampling import estimate, windows_of
from magicbyte.options.read import AdviseOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCREENSHOTS = Path(__file__).parents[2] / "target" / "advise"
RECORDS = 60_000
WORDS = [
    f"{a}{b}"
    for a in ("cart", "view", "order", "search", "log", "pay")
    for b in ("in", "out", "ed", "s", "er")
]
TRIED = (
    Layout("zstd", None, None),
    Layout("lz4", None, None),
    Layout("gzip", 1, 16 << 10),
    Layout("zstd", 6, 64 << 10),
    Layout("none", None, 64 << 10),
)

Record = tuple[bytes | None, bytes, list[tuple[str, bytes]]]


def events(chance: random.Random) -> Iterator[Record]:
    """JSON of a web shop."""
    while True:
        body = {
            "event": chance.choice(WORDS),
            "user": chance.randrange(5000),
            "path": "/".join(chance.sample(WORDS, 3)),
        }
        yield str(body["user"]).encode(), json.dumps(body).encode(), []


def noise(chance: random.Random) -> Iterator[Record]:
    """What is encrypted or compressed already."""
    while True:
        yield None, chance.randbytes(chance.randrange(50, 400)), []


def traced(chance: random.Random) -> Iterator[Record]:
    """Small values with headers."""
    while True:
        headers = [
            ("traceparent", chance.randbytes(16).hex().encode()),
            ("source", chance.choice(WORDS).encode()),
        ]
        yield chance.randbytes(8), chance.choice(WORDS).encode() * 3, headers


def drifting(chance: random.Random) -> Iterator[Record]:
    """The second half is unlike the first."""
    first, second = events(chance), noise(chance)
    for number in range(RECORDS):
        yield next(first) if number < RECORDS // 2 else next(second)


def mixed(chance: random.Random) -> Iterator[Record]:
    """A few large documents among many small records."""
    small = events(chance)
    while True:
        if chance.random() < 0.02:
            yield b"document", " ".join(chance.choices(WORDS, k=1000)).encode(), []
        else:
            yield next(small)


LOGS: dict[str, Callable[[random.Random], Iterator[Record]]] = {
    one.__name__: one for one in (events, noise, traced, drifting, mixed)
}


def write_log(directory: Path, records: Iterator[Record]) -> None:
    """Uncompressed batches of 20 records."""
    directory.mkdir(parents=True)
    with (directory / f"{0:020}.log").open("wb") as file:
        for base in range(0, RECORDS, 20):
            builder = magicbyte.RecordsBuilder()
            for offset in range(base, base + 20):
                key, value, headers = next(records)
                builder.append(offset, 1_700_000_000_000 + offset // 7, key, value, headers)
            file.write(builder.build())


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("logs")
    for name, make in LOGS.items():
        write_log(root / f"{name}-0", make(random.Random(name)))
    return root


def sizes_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*.log"))


def converted(source: Path, out: Path, layout: Layout, cli: Cli) -> int:
    level = () if layout.level is None else ("--level", layout.level)
    rebatch = () if layout.batch_bytes is None else ("--rebatch", "--batch-bytes", layout.batch_bytes)
    cli("convert", "--compression", layout.compression, *level, *rebatch, source, out)
    return sizes_of(out)


def sampled(source: Path, **options: Any) -> AdviseReport:
    options = {"windows": 20, "window_bytes": 128 << 10, "layouts": TRIED, "dictionaries": 0, **options}
    tried = {name: options.pop(name) for name in ("layouts", "dictionaries")}
    return advise([str(source)], LocalEngine(), AdviseOptions(**options), **tried)


@pytest.mark.parametrize("name", LOGS)
def test_predictions_are_what_convert_writes(name: str, logs: Path, tmp_path: Path, cli: Cli) -> None:
    source = logs / f"{name}-0"
    (topic,) = sampled(source)["topics"]
    assert topic["sampled"] < 0.7 * topic["stored"] == 0.7 * sizes_of(source)
    for number, layout in enumerate(TRIED):
        truth = converted(source, tmp_path / str(number), layout, cli)
        predicted = topic["layouts"][number]["size"]
        assert predicted == pytest.approx(truth, rel=0.03), layout


def test_intervals_hold_the_truth_in_19_of_20_samples(logs: Path, tmp_path: Path, cli: Cli) -> None:
    layout = TRIED[3]
    inside, intervals = 0, 0
    for name in LOGS:
        source = logs / f"{name}-0"
        truth = converted(source, tmp_path / name, layout, cli)
        for seed in range(20):
            (topic,) = sampled(source, layouts=(layout,), seed=seed)["topics"]
            (cost,) = topic["layouts"]
            assert cost["error"] is not None
            inside += abs(cost["size"] - truth) <= cost["error"]
            intervals += 1
    assert inside >= 0.95 * intervals, f"{inside} of {intervals}"


def test_a_small_log_is_read_in_full(logs: Path, tmp_path: Path, cli: Cli) -> None:
    source = logs / "traced-0"
    (topic,) = sampled(source, windows=1000, window_bytes=4 << 20)["topics"]
    assert topic["sampled"] == topic["stored"]
    as_is = topic["layouts"][0]
    assert as_is["error"] == 0
    assert as_is["size"] == pytest.approx(converted(source, tmp_path / "out", TRIED[0], cli), rel=1e-9)


def test_what_the_compression_analyzer_of_kip_640_prints(logs: Path, cli: Cli) -> None:
    """Size, savings, ratio, ratio per batch, time, MB/s, and statistics of batches, for each codec."""
    (topic,) = cli.json("advise", logs / "events-0", "--windows", 8, "--window-bytes", "64k")["topics"]
    batches = list(magicbyte.read_batches((logs / f"events-0/{0:020}.log").read_bytes()))
    sizes = [batch.size_in_bytes for batch in batches]
    assert (
        min(sizes) <= topic["smallest_batch"] <= topic["batch_size"] <= topic["largest_batch"] <= max(sizes)
    )
    assert topic["batch_size"] == pytest.approx(sum(sizes) / len(sizes), rel=0.02)
    as_is = {one["compression"]: one for one in topic["layouts"] if one["batch_bytes"] is None}
    assert set(as_is) == {"none", "gzip", "snappy", "lz4", "zstd"}
    for one in as_is.values():
        assert one["savings"] == pytest.approx(1 - one["size"] / topic["stored"])
        # The log is not compressed; savings are what is gone, not what remains.
        assert one["ratio"] == pytest.approx(1 / (1 - one["savings"]), rel=0.01)
        assert one["batch_ratio"] == pytest.approx(one["ratio"], rel=0.05)
        rate = topic["stored"] / one["encode_seconds"]
        assert rate == pytest.approx(one["encode_bytes_per_second"], rel=0.05)
    printed = cli("advise", logs / "events-0", "--windows", 8, "--window-bytes", "64k")
    for column in ("bytes", "savings", "ratio", "ratio per batch", "batch on disk", "write MB/s", "write s"):
        assert column in printed
    assert f"batches of {topic['smallest_batch']:,} to" in printed


def test_a_dictionary_is_for_information(logs: Path) -> None:
    topics = {one["topic"]: one for one in sampled(logs, layouts=TRIED[:1], dictionaries=2)["topics"]}
    for name, saves in (("events", True), ("noise", False)):
        found = topics[name]["dictionary"]
        assert found is not None
        assert 0 < found["dictionary"] < found["without_it"]
        assert (found["with_it"] < 0.9 * found["without_it"]) == saves
        (remark,) = (one for one in remarks_of(topics[name]) if "dictionary" in one)
        assert "not Kafka-compatible" in remark
    # No layout that is recommended has one.
    options = {"windows": 6, "window_bytes": 1 << 10, "layouts": TRIED[:1], "dictionaries": 1}
    (tiny,) = sampled(logs / "events-0", **options)["topics"]
    assert tiny["dictionary"] is None


def test_the_same_seed_takes_the_same_sample(logs: Path) -> None:
    def of(seed: int) -> list[float]:
        (topic,) = sampled(logs / "mixed-0", seed=seed)["topics"]
        return [one["size"] for one in topic["layouts"]]

    assert of(1) == of(1)
    assert of(1) != of(2)


@pytest.mark.spark
def test_spark_takes_the_same_sample(logs: Path, spark: SparkSession) -> None:
    def of(engine: Engine) -> dict[str, list[float]]:
        found = advise([str(logs)], engine, AdviseOptions(windows=12, window_bytes=64 << 10), layouts=TRIED)
        return {one["topic"]: [layout["size"] for layout in one["layouts"]] for one in found["topics"]}

    assert of(SparkEngine(spark)) == of(LocalEngine(2))


def test_advice_follows_the_figures(logs: Path, cli: Cli) -> None:
    report = cli.json("advise", logs, "--windows", 20, "--window-bytes", "64k", "--price-per-tb-month", 20)
    assert {one["topic"] for one in report["topics"]} == set(LOGS)
    for topic in report["topics"]:
        costs = topic["layouts"]
        assert len(costs) == len(LAYOUTS) < len(THOROUGH)
        assert any(one["is_pareto"] for one in costs)
        smallest = min(one["size"] for one in costs)
        by_goal = {one["goal"]: costs[one["layout"]] for one in topic["advice"]}
        assert tuple(by_goal) == GOALS
        assert by_goal["storage"]["size"] <= 1.02 * smallest
        assert by_goal["cpu"]["size"] <= topic["stored"]
        assert by_goal["latency"]["batch_bytes"] is None or by_goal["latency"]["batch_bytes"] <= 65536
        for one in costs:
            assert one["price_per_month"] == pytest.approx(one["size"] / 1e12 * 20)
            assert one["encode_bytes_per_second"] > 0 < one["decode_bytes_per_second"]
    topics = {one["topic"]: one for one in report["topics"]}
    # What does not compress is best left alone.
    noisy = {one["goal"]: topics["noise"]["layouts"][one["layout"]] for one in topics["noise"]["advice"]}
    assert noisy["storage"]["compression"] == "none"
    keys = [one["key"] for one in topics["traced"]["header_keys"]]
    assert keys == ["traceparent", "source"]
    assert not topics["events"]["header_keys"]


def test_the_table(logs: Path, cli: Cli) -> None:
    printed = cli("advise", logs / "traced-0", "--windows", 8, "--window-bytes", "64k")
    assert "for storage: " in printed
    assert "header 'traceparent'" in printed
    everything = cli("advise", logs / "traced-0", "--windows", 8, "--window-bytes", "64k", "--every-layout")
    assert everything.count("as is") >= 9


def test_what_the_cleaner_makes_of_a_layout(logs: Path, tmp_path: Path, cli: Cli) -> None:
    options = ("--windows", 2, "--window-bytes", "16k", "--exclude", "__cluster_metadata")
    shutil.copytree(logs / "traced-0", tmp_path / "__consumer_offsets-0")
    (tmp_path / "other-0").mkdir()
    shutil.copytree(KAFKA / "cluster_metadata", tmp_path / "node" / "__cluster_metadata-0")
    (topic,) = cli.json("advise", tmp_path, *options, code=None)["topics"]
    assert (topic["cleanup_policy"], topic["compression_type"]) == ("compact", "producer")
    printed = cli("advise", tmp_path, *options, code=None)
    assert "cleanup.policy=compact: the cleaner keeps each batch's codec" in printed
    assert "compression.type" not in printed
    # A topic that the metadata does not name.
    (tmp_path / "__consumer_offsets-0").rename(tmp_path / "elsewhere-0")
    (topic,) = cli.json("advise", tmp_path, *options, code=None)["topics"]
    assert topic["cleanup_policy"] is None
    assert "the cleaner" not in cli("advise", tmp_path, *options, code=None)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [0, 1])
def test_what_old_messages_would_be_in_magic_2(magic: int, codec: str, tmp_path: Path) -> None:
    records = [(at, 1_700_000_000_000 + at if magic else -1, None, b"v" * 100) for at in range(1000)]
    old = magicbyte.RecordsBuilder(magic, compression=magicbyte.Compression[codec.upper()])
    old.append_many(records)
    plain = magicbyte.RecordsBuilder(magic)
    plain.append_many(records)
    (tmp_path / "t-0").mkdir()
    (tmp_path / f"t-0/{0:020}.log").write_bytes(old.build())
    (topic,) = sampled(tmp_path, window_bytes=4 << 20)["topics"]
    wrapper = (26 + 8 * magic) * (codec != "none")
    assert topic["legacy"] == 1
    assert topic["legacy_messages"] == len(plain.build()) + wrapper
    # A batch is full with 164 values.
    expected = 0
    for base in range(0, 1000, 164):
        new = magicbyte.RecordsBuilder()
        new.append_many(records[base : base + 164])
        expected += len(new.build())
    assert topic["legacy_as_batches"] == expected
    assert any(f"{expected:,} in magic 2" in one for one in remarks_of(topic))


@pytest.mark.parametrize("level", [9, None])
def test_a_level_lasts_until_the_cleaner(logs: Path, level: int | None) -> None:
    layouts = (Layout("zstd", level, None), Layout("zstd", None, None))
    (topic,) = sampled(logs / "mixed-0", layouts=layouts)["topics"]
    topic["cleanup_policy"], topic["compression_type"] = "compact,delete", "zstd"
    for one in topic["advice"]:
        one["layout"] = 0
    first, *others = remarks_of(topic)
    assert first.startswith("cleanup.policy=compact,delete: ")
    assert any("batches of other codecs" in one for one in others)
    later = [one for one in others if one.startswith("  after that: zstd, batches as they are, saves")]
    assert len(later) == (level is not None)


def test_of_two_copies_of_the_metadata_none_is_believed(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs / "traced-0", tmp_path / "__cluster-0")
    shutil.copytree(KAFKA / "cluster_metadata", tmp_path / "1" / "__cluster_metadata-0")
    shutil.copytree(KAFKA / "cluster_metadata", tmp_path / "2" / "__cluster_metadata-0")
    topics = {one["topic"]: one for one in sampled(tmp_path, windows=2)["topics"]}
    assert topics["__cluster_metadata"]["cleanup_policy"] is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(logs: Path, tmp_path: Path, cli: Cli, scheme: str) -> None:
    source = logs if scheme == "light" else logs / "traced-0"
    file = tmp_path / "advice.html"
    options = ("--windows", 8, "--window-bytes", "64k", "--price-per-tb-month", 20, "--html", file)
    topics = cli.json("advise", source, *options)["topics"]
    page = opened(file)
    # A mark for each layout that was tried, filled if it is on the front; a bar for each that is shown.
    assert page.tags["circle"] == len(LAYOUTS) * len(topics)
    pareto = sum(one["is_pareto"] for topic in topics for one in topic["layouts"])
    assert page.attributes.count(("fill", "var(--card)")) == page.tags["circle"] - pareto
    assert page.tags["polyline"] == len(topics)
    shown = [
        {number for number, one in enumerate(topic["layouts"]) if one["is_pareto"]}
        | {one["layout"] for one in topic["advice"]}
        for topic in topics
    ]
    with_headers = [topic for topic in topics if topic["header_keys"]]
    bars = sum(map(len, shown)) + 2 * sum(len(topic["header_keys"]) for topic in with_headers)
    assert page.tags["rect"] == bars
    assert page.tags["path"] == sum(
        bool(topic["layouts"][number]["error"])
        for topic, own in zip(topics, shown, strict=True)
        for number in own
    )
    assert page.tags["svg"] == 2 * len(topics) + len(with_headers)
    assert len([key for key, _ in page.attributes if key == "aria-label"]) == page.tags["svg"]
    assert page.tags["script"] == 0
    links = {value for key, value in page.attributes if key in ("src", "href", "xlink:href")}
    assert links == ({f"#t{at}" for at in range(len(topics))} if len(topics) > 1 else set())
    text = file.read_text()
    assert all(f"{one['stored']:,} bytes" in text and one["advice"][0]["reason"] in text for one in topics)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shot = SCREENSHOTS / f"{scheme}.png"
    shot.unlink(missing_ok=True)
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    chromium(file, *dark, f"--screenshot={shot}", "--window-size=1100,1900")
    assert shot.stat().st_size > 50_000


def test_hostile_names_on_the_page(tmp_path: Path, cli: Cli) -> None:
    directory = tmp_path / "<img src=x onerror=alert(1)>\x1b[31m&quot;'\"-0"
    directory.mkdir()
    builder = magicbyte.RecordsBuilder()
    headers = [("<script>alert(2)</script>\u202e\x00", b"v"), ("long" * 1000, None)]
    builder.append(0, 0, None, b"value", headers)
    (directory / f"{0:020}.log").write_bytes(builder.build())
    file = tmp_path / "advice.html"
    text = cli("advise", directory, "--html", file)
    assert not {"\x1b", "\x00", "\u202e"} & {*text, *file.read_text()}
    page = opened(file)
    assert page.tags["img"] == page.tags["script"] == 0
    assert not [key for key, _ in page.attributes if key.startswith("on")]


def test_a_page_replaces_only_its_own_kind(logs: Path, tmp_path: Path, cli: Cli) -> None:
    file, source = tmp_path / "page.html", logs / "traced-0"
    small = ("--windows", 2, "--window-bytes", "16k", "--html", file)
    cli("explain", source, "--html", file)
    before = file.read_bytes()
    cli("advise", source, *small, code=2)
    assert "not a page of magicbyte advise" in cli.error
    assert file.read_bytes() == before
    file.unlink()
    cli("advise", source, *small)
    cli("advise", source, *small)


def test_a_page_without_topics(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / f"t-0/{0:020}.log").write_bytes(b"\xff" * 10_000)
    file = tmp_path / "page.html"
    cli("advise", tmp_path / "t-0", "--html", file, code=None)
    assert "Not sampled, small or empty: t<" in file.read_text()


def test_a_damaged_log_is_judged_by_its_good_part(logs: Path, tmp_path: Path, cli: Cli) -> None:
    data = bytearray((logs / f"events-0/{0:020}.log").read_bytes())
    for position in range(1000, len(data), 50_000):
        data[position] ^= 0xFF
    (tmp_path / "events-0").mkdir()
    (tmp_path / f"events-0/{0:020}.log").write_bytes(data)
    (topic,) = sampled(tmp_path)["topics"]
    (intact,) = sampled(logs / "events-0")["topics"]
    assert topic["damaged"] > 0
    assert topic["layouts"][0]["ratio"] == pytest.approx(intact["layouts"][0]["ratio"], rel=0.05)


def test_nothing_but_damage_is_named(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / f"t-0/{0:020}.log").write_bytes(b"\xff" * 10_000)
    report = cli.json("advise", tmp_path, code=None)
    assert report["topics"] == []
    assert report["not_sampled"] == ["t"]


# --- sampling -------------------------------------------------------------------------------------


def chunks_of(sizes: list[int]) -> list[Any]:
    begin, chunks = 0, []
    for size in sizes:
        chunks.append({"topic": "t", "partition": 0, "start": begin, "end": begin + size})
        begin += size
    return chunks


def test_each_share_has_a_window() -> None:
    chunks = chunks_of([100, 5000, 1, 1, 898, 4000])
    places = windows_of(chunks, 20, 10, seed=3)
    shares = [place.position // 500 for place in places]
    assert shares == list(range(20))
    for place in places:
        assert chunks[place.chunks[0]]["start"] <= place.position < chunks[place.chunks[0]]["end"]
        assert list(place.chunks) == list(range(place.chunks[0], len(chunks)))


def test_windows_stay_in_their_partition() -> None:
    chunks = chunks_of([1000, 1000])
    chunks[1]["partition"] = 1
    assert all(len(place.chunks) == 1 for place in windows_of(chunks, 4, 10, seed=0))


def test_a_steady_drift_is_no_uncertainty() -> None:
    rising = [(float(number), 100) for number in range(100)]
    shuffled = random.Random(1).sample(rising, len(rising))
    assert estimate(rising, 100_000).error < 0.1 * estimate(shuffled, 100_000).error
    assert estimate(rising, 100_000).value == pytest.approx(49_500)
    assert estimate([(50.0, 100)], 1000).error == float("inf")
    assert estimate([(50.0, 100), (210.0, 300)], 400) == (260.0, 0.0)
