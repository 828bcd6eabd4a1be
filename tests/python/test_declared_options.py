"""Options are declared once: keywords, flags, help and the names in Spark come from the same fields."""

from __future__ import annotations

import inspect
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import click
import magicbyte
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import Cli, commands_of
from magicbyte import commands
from magicbyte.calls import Run, reads
from magicbyte.cli import options as cli_options
from magicbyte.cli.app import app
from magicbyte.cli.dump_options import DumpOptions
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.cli.record_options import RecordOptions
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.lake.table import TableTarget
from magicbyte.options import (
    audit,
    backup,
    compact,
    diff,
    find,
    ingest,
    merge,
    read,
    redact,
    restore,
    rewrite,
    serve,
    shared,
    typed,
)
from magicbyte.options.declare import Options, argument, declared, narrowed, option
from magicbyte.options.values import (
    COUNT,
    FILE,
    PARTITIONS,
    PORTS,
    PROPERTIES,
    SIZE,
    TIME,
    TOPIC_IDS,
    Codec,
    Kind,
    Number,
    OneOf,
    Real,
    Repeated,
    Seconds,
    Size,
    words,
)

OF_COMMANDS: dict[str, tuple[type[Options], ...]] = {
    "advise": (read.AdviseOptions, PartitionChoice, EngineChoice),
    "audit": (audit.AuditOptions, PartitionChoice),
    "backup": (backup.BackupOptions,),
    "cluster": (read.ClusterOptions, PartitionChoice, EngineChoice),
    "compact": (compact.CompactOptions, PartitionChoice, EngineChoice, View),
    "convert": (rewrite.ConvertOptions, PartitionChoice, EngineChoice, View),
    "diff": (diff.DiffOptions, PartitionChoice, EngineChoice),
    "dump": (DumpOptions, PartitionChoice, typed.Registry),
    "explain": (read.ExplainOptions, shared.DeadLetters, PartitionChoice, EngineChoice),
    "find": (find.FindOptions, EngineChoice),
    "ingest": (
        ingest.IngestOptions,
        ingest.TargetOptions,
        ingest.FollowOptions,
        typed.TypedColumns,
        PartitionChoice,
        EngineChoice,
        View,
    ),
    "merge": (merge.MergeOptions, PartitionChoice, EngineChoice),
    "offsets": (read.OffsetsOptions, PartitionChoice, EngineChoice),
    "records": (RecordOptions, PartitionChoice),
    "recover": (rewrite.RecoverOptions, PartitionChoice, EngineChoice, View),
    "redact": (redact.RedactOptions, PartitionChoice, EngineChoice, View),
    "rescue": (shared.Decoding, PartitionChoice),
    "restore": (restore.RestoreOptions, EngineChoice),
    "serve": (serve.ServeOptions, PartitionChoice),
    "stats": (read.StatsOptions, PartitionChoice, EngineChoice, View),
    "topics": (shared.ConfigFiles, PartitionChoice),
    "verify": (read.VerifyOptions, PartitionChoice, EngineChoice, View),
    "wire": (cli_options.Secrets,),
}
# Functions that are not commands of their own: `stats --fields`, and `schemas` of a topic.
OF_OTHERS = {
    "dead_letters": shared.Decoding,
    "field_costs": shared.Decoding,
    "schemas": read.SchemasOptions,
}
CLASSES = sorted({one for classes in OF_COMMANDS.values() for one in classes}, key=lambda one: one.__name__)
# `--prefer` is for commands that take one copy of a partition, `--one-disk` for those that know assignments.
OF_SOME = {"prefer", "one_disk"}


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_every_option_is_a_flag(name: str) -> None:
    command = commands_of(app)[name]
    flags_of = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    for cls in OF_COMMANDS[name]:
        for one in declared(cls):
            assert one.flag in flags_of or one.name in OF_SOME, (cls, one)


@pytest.mark.parametrize("name", commands.__all__)
def test_every_option_is_a_keyword(name: str) -> None:
    function = getattr(magicbyte, name)
    parameters = inspect.signature(function).parameters
    keywords = [one.name for one in parameters.values() if one.kind is inspect.Parameter.KEYWORD_ONLY]
    assert "choice" in keywords or name == "restore", "a cluster is restored as a whole"
    lines = (function.__doc__ or "").split("Args:\n")[1].splitlines()
    described = [line.strip().partition(":")[0] for line in lines if line[4:5].strip()]
    assert [one for one in described if one in parameters] == list(parameters), "all of them, in order"
    job = OF_OTHERS[name] if name in OF_OTHERS else OF_COMMANDS[name][0]
    assert {one.name for one in fields(job)} <= {*keywords}  # type: ignore[arg-type]
    assert "<factory>" not in str(inspect.signature(function))
    assert "Ellipsis" not in str(inspect.signature(function))
    with pytest.raises(TypeError, match="unexpected keyword argument 'bananas'"):
        function(*(("samples", "out")[: len(parameters) - len(keywords)]), bananas=1)


@pytest.mark.parametrize("cls", CLASSES)
def test_defaults_survive_the_command_line(cls: Any) -> None:
    """Without flags, a command gets the object that a program gets without keywords."""
    caught: list[Any] = []

    @click.command()
    @flags(cls, "given")
    def command(given: Any) -> None:
        caught.append(given)

    done = CliRunner().invoke(command, [])
    assert done.exit_code == 0, done.output
    assert caught == [cls()]


@pytest.mark.parametrize("cls", CLASSES)
def test_what_is_shown_is_what_is_read(cls: Any) -> None:
    for one in declared(cls):
        if one.kind is None:
            assert isinstance(one.default, bool), one
        elif not isinstance(one.kind, Repeated) and one.default is not None and one.default is not False:
            assert one.kind.parse(one.kind.show(one.default)) == one.default, one
        assert one.help.endswith("."), one


@dataclass(frozen=True, kw_only=True)
class Sampling(Options):
    """Options of a sample."""

    share: int = option("The share to take, in percent.", default=10, kind=Number(1, 100))
    size: int | None = option("The most bytes.", default=None, default_text="all", kind=SIZE)
    order: Literal["first", "last"] = option(
        "The end to begin at.", default="first", kind=words(Literal["first", "last"])
    )
    check: bool = option("Check the sample.", default=True)
    rounds: int = argument("The number of rounds.", default=1)


@dataclass(frozen=True, kw_only=True)
class Keywords(Run, Sampling):
    """The keywords of `sample`."""


@reads(Keywords, Sampling)
def sample(sources: list[str], given: Keywords, options: Sampling) -> tuple[list[str], Sampling]:
    """Takes a sample.

    Raises:
        OSError: never.

    """
    assert given.choice == PartitionChoice()
    return sources, options


def test_one_declaration_is_all() -> None:
    assert sample("a") == (["a"], Sampling())
    assert sample(["a", "b"], share=7, check=False) == (["a", "b"], Sampling(share=7, check=False))
    text = inspect.getdoc(sample) or ""
    assert "    share: The share to take, in percent.\n" in text
    assert text.index("Takes a sample.") < text.index("Args:") < text.index("Raises:")
    help_text = CliRunner().invoke(sampling, ["--help"]).output
    for shown in (
        "--share N",
        "[default: 10]",
        "--size SIZE",
        "(all)",
        "[first|last]",
        "--check / --no-check",
    ):
        assert shown in help_text
    assert "rounds" not in help_text
    done = CliRunner().invoke(sampling, ["--share", "7", "--size", "1m", "--order", "last", "--no-check"])
    assert done.output == repr(Sampling(share=7, size=1 << 20, order="last", check=False)) + "\n"
    refused = CliRunner().invoke(sampling, ["--share", "101"])
    assert (refused.exit_code, "'--share': 101 is not in the range from 1 to 100" in refused.output) == (
        2,
        True,
    )


@click.command()
@flags(Sampling, "given")
def sampling(given: Sampling) -> None:
    print_line(repr(given))


def test_tasks_get_the_options_alone() -> None:
    """Engines and progress stay in the driver: they cannot be pickled."""
    given = Keywords(share=3)
    assert narrowed(Sampling, given) == Sampling(share=3)
    assert "engine" not in vars(narrowed(Sampling, given))


def test_a_choice_shows_what_it_chooses() -> None:
    assert repr(PartitionChoice()) == "PartitionChoice()"
    assert repr(PartitionChoice(topics=("a",), include_future=True)) == (
        "PartitionChoice(topics=('a',), include_future=True)"
    )
    assert PartitionChoice(include_stray=True).states == {"current", "remote", "stray"}


def test_secrets_are_in_no_repr() -> None:
    given = replace(redact.RedactOptions(), keys=[b"user-4711"], where="key = 'user-4711'")
    assert "4711" not in repr(given)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0"), (1, "1"), (1023, "1023"), (1 << 10, "1KiB"), (3 << 20, "3MiB"), (5 << 30, "5GiB")],
)
def test_sizes(size: int, shown: str) -> None:
    assert Size().show(size) == shown
    assert Size().parse(shown) == size


@pytest.mark.parametrize("cls", [one for one in CLASSES if ".cli." not in one.__module__])
def test_help_suits_programs_and_the_command_line(cls: Any) -> None:
    """A keyword's help names no flag, no argument of the command line and no text that only flags take."""
    described = (cls.__doc__ or "").partition("Args:")[2]
    for word in ("--", " SRC", "OUT ", "may be repeated", "ISO 8601"):
        assert word not in described, (cls, word)


def test_units_are_told() -> None:
    ingest_help, convert_help = (
        " ".join((inspect.getdoc(one) or "").split()) for one in (magicbyte.ingest, magicbyte.convert)
    )
    assert "start_timestamp: The start of the time range. In milliseconds since 1970." in ingest_help
    assert "larger than this after decompression as damaged. In bytes." in ingest_help
    assert "By topic; '' stands for the only topic." in convert_help
    assert "By default: each batch's own." in convert_help
    flag_help = (
        CliRunner()
        .invoke(commands_of(app)["ingest"], ["--help"], terminal_width=500, max_content_width=500)
        .output
    )
    assert "The start of the time range. ISO 8601, or milliseconds or seconds since 1970." in flag_help


def test_values_are_kept_in_one_form() -> None:
    assert (
        rewrite.ConvertOptions(compression="ZSTD").codec == rewrite.ConvertOptions(compression=4).codec == 4
    )
    with pytest.raises(ValueError, match="compression: 'zst' is not one of none, gzip"):
        magicbyte.convert("samples", "nowhere", compression="zst")
    with pytest.raises(TypeError, match="rebatch is True or False; the size of a batch is batch_bytes"):
        magicbyte.convert("samples", "nowhere", rebatch=65536)  # type: ignore[arg-type]
    assert rewrite.ConvertOptions(rebatch=True).packed_bytes == 1 << 20
    assert rewrite.ConvertOptions(rebatch=True, batch_bytes=5).packed_bytes == 5
    assert rewrite.ConvertOptions().packed_bytes is None
    for size in (5, 1 << 20, 0):
        with pytest.raises(magicbyte.RefusedError, match="choose rebatch"):
            magicbyte.convert("samples", "nowhere", batch_bytes=size)
    with pytest.raises(ValueError, match="window_bytes: 0 is less than 1 bytes"):
        magicbyte.advise("samples", window_bytes=0)
    with pytest.raises(ValueError, match="'orders' is one text: expected a sequence"):
        PartitionChoice(topics="orders")  # type: ignore[arg-type]
    assert PartitionChoice(topics=["orders"], partitions=[1, 2]) == PartitionChoice(  # type: ignore[arg-type]
        topics=("orders",), partitions=frozenset({1, 2})
    )
    assert rewrite.ConvertOptions(topic_ids=None).topic_ids == {}  # type: ignore[arg-type]
    assert ingest.TargetOptions(catalog_properties=MappingProxyType({"a": "b"})).catalog_properties == {
        "a": "b"
    }


def test_keys_are_read_once(tmp_path: Path) -> None:
    with pytest.raises(magicbyte.RefusedError, match="nothing"):
        magicbyte.redact("samples", tmp_path / "out", keys=iter([]))
    assert not (tmp_path / "out").exists()
    options = redact.RedactOptions(keys={b"a": 1}.keys())
    assert pickle.loads(pickle.dumps(options)).keys == (b"a",)


def test_errors_name_the_function() -> None:
    with pytest.raises(TypeError, match=r"^verify\(\) got an unexpected keyword argument 'foo'$"):
        magicbyte.verify("samples", foo=1)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"^rescue\(\) has too many positional arguments: the others are keywords$"
    ):
        magicbyte.rescue("samples", "out")  # type: ignore[call-arg]
    assert "given" not in magicbyte.verify.__annotations__


def test_a_catalogs_secrets_are_in_no_repr() -> None:
    properties = {"token": "SECRET"}
    for shown in (
        ingest.TargetOptions(catalog_properties=properties),
        read.VerifyOptions(catalog_properties=properties),
        TableTarget("iceberg", "a.b", "prod", properties),
    ):
        assert "SECRET" not in repr(shown)


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (Real("X", positive=True), "inf", "inf is not a finite number"),
        (Real("X"), "nan", "nan is not a finite number"),
        (Real("X", positive=True), "0", "0 is not above 0"),
        (Real("X"), "-1", "-1 is not at least 0"),
        (Number(1), "0", "0 is not at least 1"),
        (Number(1, 9), "10", "10 is not in the range from 1 to 9"),
        (Size(least=1), "0", "0 is less than 1 bytes"),
    ],
)
def test_what_is_out_of_range(kind: Any, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        kind.parse(text)


def _message(work: Callable[[], object]) -> str:
    with pytest.raises(ValueError, match="is") as refused:
        work()
    return str(refused.value)


@pytest.mark.parametrize(
    ("options", "name", "given", "says"),
    [
        (read.AdviseOptions, "windows", 0, "0 is not in the range from 1 to 10,000"),
        (read.AdviseOptions, "windows", 10_001, "10001 is not in the range from 1 to 10,000"),
        (read.AdviseOptions, "windows", 1.5, "1.5 is not a whole number"),
        (read.AdviseOptions, "windows", True, "True is not a whole number"),
        (read.AdviseOptions, "windows", "7", "'7' is not a whole number"),
        (read.AdviseOptions, "windows", None, "None is not a whole number"),
        (read.AdviseOptions, "price_per_tb_month", math.inf, "inf is not a finite number"),
        (read.AdviseOptions, "price_per_tb_month", -1, "-1 is not at least 0"),
        (read.AdviseOptions, "price_per_tb_month", "1", "'1' is not a number"),
        (ingest.FollowOptions, "interval", 0, "0 is not above 0"),
        (rewrite.CopyOptions, "segment_bytes", 1 << 31, "2147483648 is more than 2,147,483,647 bytes"),
        (rewrite.CopyOptions, "max_decompressed_bytes", 0, "0 is less than 1 bytes"),
        (rewrite.ConvertOptions, "level", 1 << 31, "2147483648 is not in the range"),
        (rewrite.ConvertOptions, "magic", 3, "3 is not one of 2, 1, 0, keep"),
        (rewrite.ConvertOptions, "compression", 9, "9 is not one of none, gzip"),
        (rewrite.CopyOptions, "leader_epoch", -1, "-1 is not in the range from 0"),
        (ingest.IngestOptions, "start_offset", -1, "-1 is not in the range from 0"),
        (ingest.IngestOptions, "start_timestamp", 1 << 63, "9223372036854775808 is not in the range"),
        (ingest.IngestOptions, "isolation_level", "none", "'none' is not one of read_uncommitted"),
        (serve.ServeOptions, "idle_ms", 0, "0 ms, in seconds, is not in the range from 1"),
    ],
)
def test_every_class_checks_what_it_is_given(options: Any, name: str, given: Any, says: str) -> None:
    assert _message(lambda: options(**{name: given})).startswith(f"{name}: {says}")


class Number7(IntEnum):
    SEVEN = 7


class Text(str):
    pass


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


HUGE = 10**5000
"""Python refuses to print it, with a ValueError of its own."""

ZSTD = Codec()
WORDS = OneOf({"2": 2, "1": 1, "keep": None})
FLAG = OneOf({"2": True})


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (COUNT, Number7.SEVEN, 7),
        (COUNT, np.uint8(7), 7),
        (SIZE, Number7.SEVEN, 7),
        (TIME, np.int64(-5), -5),
        (Seconds(1), np.int32(1500), 1500),
        (Real("X"), 7, 7.0),
        (Real("X"), Fraction(1, 2), 0.5),
        (Real("X"), Decimal("0.5"), 0.5),
        (ZSTD, magicbyte.Compression.ZSTD, 4),
        (ZSTD, np.int8(4), 4),
        (ZSTD, "Zstd", 4),
        (WORDS, 1, 1),
        (WORDS, None, None),
        (FLAG, True, True),
        (words(Literal["a", "b"]), Text("a"), "a"),
        (Repeated("X"), iter(["a", Path("b")]), ("a", Path("b"))),
        (PARTITIONS, range(2), frozenset({0, 1})),
        (PARTITIONS, {np.int64(3)}, frozenset({3})),
        (PORTS, [np.int64(9092)], (9092,)),
        (PROPERTIES, None, {}),
        (PROPERTIES, [("a", "b")], {"a": "b"}),
        (FILE, Path("x"), Path("x")),
    ],
)
def test_values_of_callers(kind: Any, value: Any, kept: Any) -> None:
    found = kind.normal(value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (COUNT, [True, 1.0, "1", b"1", None, math.nan, HUGE, -HUGE, np.array([1, 2]), np.bool_(True), 1j]),
        (SIZE, [True, 1.0, "1k", HUGE, -1, Unprintable(), [1]]),
        (TIME, [True, 1.0, "2020-01-01", HUGE, datetime(2020, 1, 1), np.datetime64(0, "ms")]),
        (Seconds(1), [True, 1.0, HUGE, 0]),
        (Real("X"), [True, "1", b"1", None, math.nan, math.inf, -math.inf, 10**400, HUGE, -HUGE, 1j]),
        (Real("X"), [Decimal("sNaN"), Decimal("inf"), Fraction(HUGE), np.float32("nan"), np.bool_(True)]),
        (ZSTD, [True, False, 4.0, b"zstd", None, 5, HUGE, np.bool_(True), [4], Unprintable()]),
        (WORDS, [True, 2.0, "2", b"keep", 3, np.nan]),
        (FLAG, [1, 1.0, "2", False]),
        (words(Literal["a", "b"]), [b"a", "A", 0, None, ["a"], {"a"}]),
        (Kind(), [1, True, b"text", None, ["text"], Unprintable()]),
        (FILE, [1, b"name", 1.5]),
        (Repeated("X"), ["ab", b"ab", bytearray(b"ab"), 1, None, ["a", 1], [b"a"], [None], [["a"]]]),
        (PARTITIONS, ["0,3", b"\0", 3, None, [-1], [True], [1.0], ["1"], [1 << 31], [HUGE]]),
        (PORTS, [b"\1", "80", 80, [0], [65_536], [True], ["80"]]),
        (PROPERTIES, ["ab", 1, 0, ["ab", "c"], {"a": 1}, {1: "a"}, {"a": None}, {"a": b"b"}]),
        (TOPIC_IDS, [{"a": "short"}, {"a": 1}, "ab"]),
    ],
)
def test_values_of_hostile_callers(kind: Any, values: list[Any]) -> None:
    """They are refused with a ValueError that is short, and names the value if that has a repr."""
    for value in values:
        message = _message(lambda value=value: kind.normal(value))  # type: ignore[misc]
        assert len(message) < 200
        assert "limit" not in message


def test_numbers_of_other_libraries() -> None:
    assert read.AdviseOptions(windows=np.int64(7)).windows == 7
    assert type(read.AdviseOptions(windows=np.int64(7)).windows) is int
    assert ingest.FollowOptions(interval=np.float32(0.5)).seconds == 0.5
    assert serve.ServeOptions(idle_ms=1500).idle_ms == 1500


def test_a_number_is_refused_through_every_door(cli: Cli) -> None:
    """Spark's are in test_spark_options.py."""
    assert _message(lambda: magicbyte.advise("samples", windows=0)) == (
        "windows: 0 is not in the range from 1 to 10,000"
    )
    cli("advise", "--windows", "0", "samples", code=2)
    assert "'--windows': 0 is not in the range from 1 to 10,000" in cli.error
