"""Flags of commands, made from the declarations of options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import click

from magicbyte.options.declare import Declared, declared
from magicbyte.options.values import EXPRESSION, Content, Directories, File, Kind, OneOf, Repeated

__all__ = ["flag", "flags"]

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    _AnyType = click.ParamType[Any]
else:
    # Generic only since click 8.4.
    _AnyType = click.ParamType


class _Value(_AnyType):
    """A value of a kind; anything else is a usage error, before a job starts."""

    def __init__(self, kind: Kind) -> None:
        self.name = kind.name
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        try:
            return self._kind.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def flags(
    options: Callable[..., Any],
    name: str,
    *,
    without: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Callable[[F], F]:
    """The flags of a class of options; the command gets one object of the class as `name`.

    Args:
        options: the class.
        name: the parameter of the command.
        without: fields that this command has no flag for.
        defaults: defaults that differ from those of the class.

    """
    chosen = [declaration for declaration in declared(cast(type, options)) if declaration.name not in without]

    def decorate(command: F) -> F:
        @wraps(command)
        def with_options(**arguments: Any) -> Any:
            values = {declaration.name: arguments.pop(declaration.name) for declaration in chosen}
            return command(**{name: options(**values)}, **arguments)

        decorated: Callable[..., Any] = with_options
        for declaration in reversed(chosen):
            decorated = _option(declaration, (defaults or {}).get(declaration.name, declaration.default))(
                decorated
            )
        return cast(F, decorated)

    return decorate


def flag(options: type, name: str, *, help: str | None = None) -> Callable[[F], F]:
    """The flag of one field; the command gets its value."""
    chosen = next(declaration for declaration in declared(options) if declaration.name == name)
    return _option(chosen, chosen.default, help)


def _option(declaration: Declared, default: Any, help: str | None = None) -> Callable[[F], F]:
    kind = declaration.kind
    text = " ".join(filter(None, (help or declaration.help, kind.texts if kind else "")))
    if kind is None:
        # With --no-, it is true by default.
        flags = f"{declaration.flag}/--no-{declaration.flag[2:]}" if default else declaration.flag
        return click.option(
            flags, declaration.name, is_flag=True, default=default, show_default=default, help=text
        )
    more: dict[str, Any] = {
        "metavar": kind.metavar,
        "help": f"{text} See below for EXPR." if kind is EXPRESSION else text,
        "show_default": declaration.default_text or False,
    }
    if isinstance(kind, Repeated):
        more |= {"multiple": True, "callback": _together(kind)}
        if isinstance(kind, Directories):
            more["type"] = click.Path(exists=True, file_okay=False)
    else:
        more |= _type_of(kind, default)
        if default is not None and default is not False:
            more |= {"default": kind.show(default), "show_default": True}
    return click.option(declaration.flag, declaration.name, **more)


def _type_of(kind: Kind, default: Any) -> dict[str, Any]:
    """The keywords of `click.option` for a single value of a kind."""
    if isinstance(kind, File):
        return {"type": click.Path(exists=True, dir_okay=False)}
    if isinstance(kind, Content):
        return {"type": click.File("rb"), "callback": _content}
    if isinstance(kind, OneOf):
        words = list(kind.values)
        type = click.Choice(words, case_sensitive=not any(map(str.isupper, words)))

        def meant(_ctx: click.Context, _param: click.Parameter, word: str | None) -> Any:
            return default if word is None else kind.values[word]

        return {"type": type, "metavar": f"[{'|'.join(words)}]", "callback": meant}
    return {"type": _Value(kind)}


def _content(_ctx: click.Context, param: click.Parameter, file: BinaryIO | None) -> str | None:
    """The callback of an option whose value is the text of a file."""
    try:
        # Editors on Windows put a byte order mark before the text.
        return None if file is None else file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"not UTF-8: {error}", param=param) from None


def _together(kind: Repeated) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], Any]:
    """The callback of an option with `multiple=True`, whose values are one value together."""

    def parse(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Any:
        try:
            return kind.parse_all(texts)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return parse
