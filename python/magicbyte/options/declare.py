"""Declarations of options: the fields of a class, with their help.

>>> from dataclasses import dataclass
>>> from magicbyte.options.declare import Options, declared, option
>>> @dataclass(frozen=True, kw_only=True)
... class Sampling(Options):
...     windows: int = option("The number of places to sample.", default=32)
>>> [(field.name, field.help) for field in declared(Sampling)]
[('windows', 'The number of places to sample.')]
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

from magicbyte.options.values import Kind

__all__ = ["Declared", "Options", "argument", "declared", "defaults_of", "flag_of", "narrowed", "option"]

T = TypeVar("T")
_KEY = "option"
_HELP = "help"
_FLAG = "flag"


@dataclass(frozen=True)
class _Option:
    help: str
    kind: Kind | None
    flag: str | None
    default_text: str | None
    secret: bool


@dataclass(frozen=True)
class Declared:
    """An option of a class, as the command line and the documentation need it."""

    name: str
    """The name of the field and keyword."""
    flag: str
    help: str
    kind: Kind | None
    """The kind of its values; None for a boolean option."""
    default: Any
    default_text: str | None
    """The meaning of the default, where it says nothing itself."""
    secret: bool
    """True if its values may be confidential."""


def option(
    help: str,
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | None = None,
    kind: Kind | None = None,
    flag: str | None = None,
    default_text: str | None = None,
    secret: bool = False,
) -> Any:
    """A field that is an option: a keyword of functions, and a flag of the command line.

    Args:
        help: one or two sentences, for both.
        default: the value without the option.
        default_factory: makes that value, if it is mutable.
        kind: the kind of its values; None for a flag that is given or not.
        flag: the flag, where it is not the name of the field with hyphens.
        default_text: the meaning of the default, where it says nothing itself.
        secret: leave the value out of the repr, and of certificates.

    """
    metadata = {_KEY: _Option(help, kind, flag, default_text, secret)}
    if default_factory is not None:
        return field(default_factory=default_factory, repr=not secret, metadata=metadata)
    return field(default=default, repr=not secret, metadata=metadata)


def argument(help: str, *, default: Any, secret: bool = False, flag: str | None = None) -> Any:
    """A field that is only a keyword: the command line has no flag for it, or makes the value itself.

    Args:
        help: one or two sentences.
        default: the value without the keyword.
        secret: leave the value out of the repr.
        flag: the flag from which the command line makes the value.

    """
    return field(default=default, repr=not secret, metadata={_HELP: help, _FLAG: flag})


class Options:
    """The base of classes with options; their docstrings list the fields.

    Raises:
        ValueError: if an option has a value that is not of its kind; the message begins with its name.

    """

    def __post_init__(self) -> None:
        for each in declared(type(self)):
            value = getattr(self, each.name)
            # A default may stand for a value that is found later.
            if each.kind is None or value is each.default:
                continue
            try:
                object.__setattr__(self, each.name, each.kind.normal(value))
            except ValueError as error:
                raise ValueError(f"{each.name}: {error}") from None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        described = dict(_described(cls))
        if described and cls.__doc__:
            lines = [_paragraph(name, text) for name, text in described.items()]
            summary = cls.__doc__.partition("\n\nArgs:\n")[0].rstrip()
            cls.__doc__ = "\n".join([f"{summary}\n\nArgs:", *lines, ""])


def _described(cls: type) -> Iterator[tuple[str, str]]:
    """The fields with their help, those of the class before those of its bases."""
    seen = set()
    for owner in cls.__mro__:
        inherited = owner.__dict__.get("__dataclass_fields__", {})
        for name in inspect.get_annotations(owner):
            attribute = inherited.get(name, owner.__dict__.get(name))
            if isinstance(attribute, Field) and name not in seen:
                seen.add(name)
                given = attribute.metadata.get(_KEY)
                yield name, attribute.metadata.get(_HELP, "") if given is None else _keyword_help(given)


def _keyword_help(given: _Option) -> str:
    parts = [given.help, given.kind.unit if given.kind else ""]
    if given.default_text is not None:
        parts.append(f"By default: {given.default_text}.")
    return " ".join(filter(None, parts))


def _paragraph(name: str, text: str) -> str:
    return textwrap.fill(
        f"{name}: {text}", 106, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False
    )


def declared(cls: type) -> Iterator[Declared]:
    """The options of a class, its own before those of its bases."""
    by_name = {attribute.name: attribute for attribute in fields(cls)}
    for name, default in defaults_of(cls):
        given: _Option | None = by_name[name].metadata.get(_KEY)
        if given is None:
            continue
        yield Declared(
            name, flag_of(cls, name), given.help, given.kind, default, given.default_text, given.secret
        )


def flag_of(cls: type, name: str) -> str:
    """The flag of a field: its own, or its name with hyphens.

    Raises:
        KeyError: if the class has no such field.

    """
    metadata = {attribute.name: attribute for attribute in fields(cls)}[name].metadata
    given: _Option | None = metadata.get(_KEY)
    own: str | None = metadata.get(_FLAG) if given is None else given.flag
    return own or f"--{name.replace('_', '-')}"


def defaults_of(cls: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a class with their defaults, its own before those of its bases."""
    by_name = {attribute.name: attribute for attribute in fields(cls)}
    for name, _ in _described(cls):
        attribute = by_name[name]
        yield name, attribute.default if attribute.default_factory is MISSING else attribute.default_factory()


def narrowed(cls: type[T], given: Any) -> T:
    """The part of some options that a class has: itself without the fields of its subclasses."""
    return cls(**{attribute.name: getattr(given, attribute.name) for attribute in fields(cls)})  # type: ignore[arg-type]
