"""Options are declared once: keywords, flags, help and the names in Spark come from the same fields."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import click
import magicbyte
import pytest
from click.testing import CliRunner
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
from magicbyte.options import compact, ingest, read, redact, rewrite, serve, shared, typed
from magicbyte.options.declare import Options, argument, declared, narrowed, option
from magicbyte.options.values import SIZE, Number, Repeated, Size, words

OF_COMMANDS: dict[str, tuple[type[Options], ...]] = {
    "advise": (read.AdviseOptions, PartitionChoice, EngineChoice),
    "compact": (compact.CompactOptions, PartitionChoice, EngineChoice, View),
    "convert": (rewrite.ConvertOptions, PartitionChoice, EngineChoice, View),
    "dump": (DumpOptions, PartitionChoice, typed.Registry),
    "explain": (read.ExplainOptions, PartitionChoice, EngineChoice),
    "ingest": (
        ingest.IngestOptions,
        ingest.TargetOptions,
        ingest.FollowOptions,
        typed.TypedColumns,
        PartitionChoice,
        EngineChoice,
        View,
    ),
    "offsets": (read.OffsetsOptions, PartitionChoice, EngineChoice),
    "records": (RecordOptions, PartitionChoice),
    "recover": (rewrite.RecoverOptions, PartitionChoice, EngineChoice, View),
    "redact": (redact.RedactOptions, PartitionChoice, EngineChoice, View),
    "rescue": (shared.Decoding, PartitionChoice),
    "serve": (serve.ServeOptions, PartitionChoice),
    "stats": (shared.Decoding, PartitionChoice, EngineChoice, View),
    "topics": (shared.TopicConfigFile, PartitionChoice),
    "verify": (read.VerifyOptions, PartitionChoice, EngineChoice, View),
    "wire": (cli_options.Secrets,),
}
CLASSES = sorted({one for classes in OF_COMMANDS.values() for one in classes}, key=lambda one: one.__name__)
# `--prefer` is for commands that take one copy of a partition, `--one-disk` for those that know assignments.
OF_SOME = {"prefer", "one_disk"}


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_every_option_is_a_flag(name: str) -> None:
    command = app.commands[name]
    flags_of = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    for cls in OF_COMMANDS[name]:
        for one in declared(cls):
            assert one.flag in flags_of or one.name in OF_SOME, (cls, one)


@pytest.mark.parametrize("name", commands.__all__)
def test_every_option_is_a_keyword(name: str) -> None:
    function = getattr(magicbyte, name)
    parameters = inspect.signature(function).parameters
    keywords = [one.name for one in parameters.values() if one.kind is inspect.Parameter.KEYWORD_ONLY]
    assert {"choice"} < {*keywords}
    lines = (function.__doc__ or "").split("Args:\n")[1].splitlines()
    described = [line.strip().partition(":")[0] for line in lines if line[4:5].strip()]
    assert [one for one in described if one in parameters] == list(parameters), "all of them, in order"
    (job, *_) = (
        OF_COMMANDS[name if name in OF_COMMANDS else "stats"] if name != "schemas" else (read.SchemasOptions,)
    )
    assert {one.name for one in fields(job)} <= {*keywords}  # type: ignore[arg-type]
    assert "<factory>" not in str(inspect.signature(function))
    assert "..." not in str(inspect.signature(function))
    with pytest.raises(TypeError, match="unexpected keyword argument 'bananas'"):
        function("samples", *(("out",) if "out" in list(parameters)[:2] else ()), bananas=1)


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
