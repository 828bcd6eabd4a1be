"""The options that a Spark job gives: text by names in any case, read by their declarations."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from magicbyte.options.declare import Declared, declared
from magicbyte.options.values import OneOf, Repeated
from magicbyte.spark.names import spark_name

__all__ = ["Given", "OptionError", "names_of"]

# Names of options that concern a broker: a job that moves from Kafka to files may keep them.
_IGNORED_PREFIXES = ("kafka.", "option.")
# Spark's catalog passes the properties of a table as options, and the options again with a prefix.
_OF_CATALOG = (
    "collation",
    "comment",
    "external",
    "is_managed_location",
    "location",
    "owner",
    "provider",
    "table_type",
)
_BOOLEAN = OneOf({"true": True, "false": False})

T = TypeVar("T")


class OptionError(ValueError):
    """An unknown option, or an invalid value of an option."""


def names_of(options: type, *names: str) -> tuple[str, ...]:
    """The names in Spark of the options that a class declares, or of those with these names."""
    return tuple(spark_name(one.flag) for one in declared(options) if not names or one.name in names)


class Given:
    """The options of a job.

    Args:
        options: the texts by their names.
        known: the names of options that the job may have.
        ignored: further names that do no harm.
        prefixes: beginnings of further names that it may have.

    Raises:
        OptionError: for another name.

    """

    def __init__(
        self,
        options: Mapping[str, str],
        known: Collection[str],
        *,
        ignored: Iterable[str] = (),
        prefixes: tuple[str, ...] = (),
    ) -> None:
        self._texts = {name.lower(): text for name, text in options.items()}
        # `paths` is how Spark passes on `load([...])`.
        unharmed = {name.lower() for name in (*known, *ignored, "paths", *_OF_CATALOG)}
        for name in self._texts:
            if name not in unharmed and not name.startswith((*_IGNORED_PREFIXES, *prefixes)):
                raise _unknown(name, known)

    def text(self, name: str) -> str | None:
        """The text of an option; None if it is not given."""
        return self._texts.get(name.lower())

    def below(self, prefix: str) -> dict[str, str]:
        """The options whose names begin with a prefix, by the rest of their names."""
        given = self._texts.items()
        return {name.removeprefix(prefix): text for name, text in given if name.startswith(prefix)}

    def read(self, options: type[T]) -> T:
        """The options that a class declares.

        Raises:
            OptionError: for a text that stands for no value of its option.

        """
        return options(**{option.name: self._value(option) for option in declared(options)})

    def value(self, options: type, name: str) -> Any:
        """The value of one option of a class; errors are those of `read`."""
        return self._value(next(option for option in declared(options) if option.name == name))

    def _value(self, option: Declared) -> Any:
        name = spark_name(option.flag)
        text = self.text(name)
        if not text:
            return option.default
        kind = _BOOLEAN if option.kind is None else option.kind
        try:
            if isinstance(kind, Repeated):
                parts = [part for one in text.split(",") if (part := one.strip())]
                if not parts:
                    raise ValueError(f"{text!r} is an empty list")
                return kind.parse_all(parts)
            return kind.parse(text)
        except ValueError as error:
            raise OptionError(f"{name}: {error}") from None


def _unknown(name: str, names: Collection[str]) -> OptionError:
    known = {name.lower(): name for name in names}
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {known[near[0]]}?" if near else "."
    return OptionError(f"unknown option {name}{hint} Known are: {', '.join(names)}")
