"""The command line of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from magicbyte.options.declare import Declared, Options, declared

__all__ = ["HIDDEN", "command_line"]

HIDDEN = "[hidden]"
"""Stands for a value that may be confidential."""


def command_line(name: str, arguments: Sequence[str], *options: Options) -> list[str]:
    """The words of a command, with the options whose values are not the defaults.

    >>> from magicbyte.options.rewrite import RecoverOptions
    >>> command_line("recover", ["b1", "out"], RecoverOptions(method="truncate", segment_bytes=1 << 30))
    ['magicbyte', 'recover', 'b1', 'out', '--method', 'truncate', '--segment-bytes', '1GiB']
    """
    flags = [word for given in options for one in declared(type(given)) for word in _words(one, given)]
    return ["magicbyte", name, *arguments, *flags]


def _words(one: Declared, given: Options) -> Iterator[str]:
    value = getattr(given, one.name)
    if value == one.default:
        return
    if one.kind is None:
        yield one.flag if value else f"--no-{one.flag[2:]}"
        return
    for text in [HIDDEN] if one.secret else _texts(one, value):
        yield from (one.flag, text)


def _texts(one: Declared, value: Any) -> Iterator[str]:
    assert one.kind is not None
    if isinstance(value, Mapping):
        yield from (f"{key}={text}" if key else str(text) for key, text in value.items())
    elif isinstance(value, frozenset):
        yield from map(str, sorted(value))
    elif isinstance(value, tuple):
        yield from map(one.kind.show, value)
    else:
        yield one.kind.show(value)
