"""The functions of commands, whose keywords are the fields of a class of options.

A type checker sees each keyword with its type, `help` shows each with its meaning, and an option is declared
in one place only.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from magicbyte.errors import RefusedError
from magicbyte.extras import naming_extras
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice, check_choice
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.declare import Options, argument, defaults_of, narrowed

__all__ = ["Chosen", "Path", "Run", "Sources", "Tasks", "paths_of", "reads", "writes"]

_SOURCES = "Directories with partitions at or below them, or segment files: one path, or a sequence."
_OUT = "A directory or URL that does not exist or is empty. It appears under its name when all is done."

P = ParamSpec("P")
S = TypeVar("S", bound=Options)
R = TypeVar("R")

Path: TypeAlias = "str | bytes | PathLike[str] | PathLike[bytes]"
Sources: TypeAlias = (
    "str | bytes | PathLike[str] | PathLike[bytes] | Sequence[str | bytes | PathLike[str] | PathLike[bytes]]"
)
"""Directories with partitions at or below them, or segment files: one path, or a sequence of them."""


@dataclass(frozen=True, kw_only=True)
class Chosen(Options):
    """Arguments of every command."""

    choice: PartitionChoice = argument("The partitions to read.", default=EVERYTHING)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.choice)


@dataclass(frozen=True, kw_only=True)
class Tasks(Options):
    """Arguments of every command that runs tasks."""

    engine: Engine | None = argument(
        "The place of the tasks; None for one thread per core."
        " `magicbyte.jobs.run.engines.SparkEngine(spark)` runs them on Spark.",
        default=None,
    )
    progress: Progress = argument(
        "The receiver of progress; `magicbyte.jobs.run.progress.terminal_progress()` shows a bar.",
        default=NO_PROGRESS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, method in (("engine", self.engine, "map"), ("progress", self.progress, "step")):
            if value is not None and not hasattr(value, method):
                raise TypeError(f"{name}: expected an object with the method {method}, not {value!r:.100}")

    @property
    def runner(self) -> Engine:
        """The engine."""
        return self.engine or LocalEngine()


@dataclass(frozen=True, kw_only=True)
class Run(Tasks, Chosen):
    """Arguments of a command that runs tasks for the partitions that are chosen."""


A = TypeVar("A", bound=Options)


def paths_of(sources: Sources) -> list[str]:
    """One path, or a sequence of them, as a list.

    Raises:
        TypeError: for anything else.
        RefusedError: for an empty sequence.

    """
    if isinstance(sources, str | bytes | PathLike):
        return [os.fsdecode(sources)]
    if not isinstance(sources, Iterable):
        raise TypeError(f"sources: expected a path or a sequence of paths, not {type(sources).__name__}")
    paths = [os.fsdecode(source) for source in sources]
    if not paths:
        raise RefusedError("no source is given: expected a path or a sequence of paths")
    return paths


def reads(
    keywords: Callable[P, A], options: type[S], *, sources: str = _SOURCES
) -> Callable[[Callable[[list[str], A, S], R]], Callable[Concatenate[Sources, P], R]]:
    """Makes the function of a command that only reads.

    Args:
        keywords: the class whose fields are the keywords.
        options: the part of it that the job needs, and sends to its tasks.
        sources: the help of the argument.

    """

    def decorate(function: Callable[[list[str], A, S], R]) -> Callable[Concatenate[Sources, P], R]:
        @wraps(function)
        def command(sources: Sources, /, *args: P.args, **kwargs: P.kwargs) -> R:
            given = _given(function, keywords, *args, **kwargs)
            with naming_extras(function.__name__):
                return function(paths_of(sources), given, narrowed(options, given))

        _describe(command, keywords, {"sources": (Sources, sources)})
        return command

    return decorate


def writes(
    keywords: Callable[P, A], options: type[S], *, sources: str = _SOURCES, out: str = _OUT
) -> Callable[[Callable[[list[str], str, A, S], R]], Callable[Concatenate[Sources, Path, P], R]]:
    """Makes the function of a command that writes; the arguments are those of `reads`."""

    def decorate(
        function: Callable[[list[str], str, A, S], R],
    ) -> Callable[Concatenate[Sources, Path, P], R]:
        @wraps(function)
        def command(sources: Sources, out: Path, /, *args: P.args, **kwargs: P.kwargs) -> R:
            given = _given(function, keywords, *args, **kwargs)
            with naming_extras(function.__name__):
                return function(paths_of(sources), os.fsdecode(out), given, narrowed(options, given))

        _describe(command, keywords, {"sources": (Sources, sources), "out": (Path, out)})
        return command

    return decorate


def _given(function: Callable[..., Any], keywords: Callable[P, A], *args: P.args, **kwargs: P.kwargs) -> A:
    """The keywords of a call. Errors name the function, not the class."""
    if args:
        raise TypeError(f"{function.__name__}() has too many positional arguments: the others are keywords")
    try:
        return keywords(*args, **kwargs)
    except TypeError as error:
        _, call, problem = str(error).partition("__init__() ")
        raise TypeError(f"{function.__name__}() {problem}" if call else str(error)) from None


def _describe(
    command: Callable[..., Any], keywords: Callable[..., Any], leading: dict[str, tuple[Any, str]]
) -> None:
    """Gives a command the signature that it has, and a docstring with all arguments."""
    signature = inspect.signature(command)
    positional = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=annotation)
        for name, (annotation, _) in leading.items()
    ]
    by_name = inspect.signature(keywords).parameters
    given = [by_name[name].replace(default=default) for name, default in defaults_of(keywords)]
    shown = signature.replace(parameters=[*positional, *given])
    command.__signature__ = shown  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in shown.parameters.items()}
    command.__annotations__["return"] = shown.return_annotation
    # `help` would show the arguments of the job.
    del command.__wrapped__  # type: ignore[attr-defined]
    summary, rest = _before_section(inspect.cleandoc(command.__doc__ or ""))
    described = (keywords.__doc__ or "").partition("\n\nArgs:\n")[2].rstrip()
    first = "\n".join(f"    {name}: {text}" for name, (_, text) in leading.items())
    command.__doc__ = f"{summary}\n\nArgs:\n{first}\n{described}\n{rest}"


def _before_section(text: str) -> tuple[str, str]:
    """A docstring as its text before the first section, and the rest."""
    for heading in ("\n\nReturns:", "\n\nRaises:", "\n\nYields:"):
        before, section, after = text.partition(heading)
        if section:
            return before, section[1:] + after
    return text, ""
