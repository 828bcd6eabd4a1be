"""Options for typed keys and values that need or exclude each other, in Python, in commands and on Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder, RefusedError
from magicbyte.options.typed import Registry, TypedColumns
from magicbyte.options.typed_rules import asks_for_schemas, broken_rule, flag_of_rule
from magicbyte.schema.http_client import HttpSettings
from magicbyte.spark.given import OptionError
from magicbyte.spark.names import spark_name
from magicbyte.spark.options import parse_table

SCHEMA = '"int"'
GIVEN: dict[str, Any] = {
    "schema_registry": "schemas",
    "http": HttpSettings(token="t"),
    "reader_schema": SCHEMA,
    "key_reader_schema": SCHEMA,
    "messages": ("shop.Cart",),
    "key_framing": "glue",
    "value_framing": "none",
    "key_windows": "time",
    "validate": True,
    "validate_formats": True,
    "json_integers": "text",
}
"""A value of each option that is not its default."""
ANY = "avro, protobuf or json"
BOTH = "{key_format} or {value_format}"
KEYS, VALUES = {"key_format": "avro"}, {"value_format": "avro"}
SOURCE = {"schema_registry": "schemas"}

BROKEN: list[tuple[dict[str, Any], str]] = [
    # Options that no column uses.
    *(({name: GIVEN[name]}, f"{{{name}}} is for {BOTH} {ANY}") for name in ("schema_registry", "http")),
    *(
        ({name: GIVEN[name], **more}, f"{{{name}}} is for {{key_format}} {ANY}")
        for name in ("key_windows", "key_framing", "key_reader_schema")
        for more in ({}, {**SOURCE, **VALUES})
    ),
    *(
        ({name: GIVEN[name], **more}, f"{{{name}}} is for {{value_format}} {ANY}")
        for name in ("value_framing", "reader_schema")
        for more in ({}, {**SOURCE, **KEYS})
    ),
    *(
        ({"messages": GIVEN["messages"], **more}, "{messages} is for {value_format} protobuf")
        for more in ({}, {**SOURCE, **VALUES}, {**SOURCE, "key_format": "protobuf"})
    ),
    *(
        ({name: GIVEN[name], **more}, f"{{{name}}} is for {BOTH} json")
        for name in ("validate", "validate_formats", "json_integers")
        for more in ({}, {**SOURCE, **KEYS, "value_format": "protobuf"})
    ),
    # Columns without schemas.
    (KEYS, "{key_format} needs {schema_registry} or {key_reader_schema}"),
    (VALUES, "{value_format} needs {schema_registry} or {reader_schema}"),
    (
        {**KEYS, **VALUES, "reader_schema": SCHEMA},
        "{key_format} needs {schema_registry} or {key_reader_schema}",
    ),
    (
        {**KEYS, **VALUES, "key_reader_schema": SCHEMA},
        "{value_format} needs {schema_registry} or {reader_schema}",
    ),
    ({"value_format": "json", "validate": True}, "{value_format} needs {schema_registry} or {reader_schema}"),
    ({**VALUES, "reader_schema": SCHEMA, "http": GIVEN["http"]}, "{http} needs {schema_registry}"),
    # Columns of two types.
    ({**KEYS, **SOURCE, "key_as": "string"}, "{key_as} and {key_format} exclude each other"),
    ({**VALUES, **SOURCE, "value_as": "json"}, "{value_as} and {value_format} exclude each other"),
    ({"key_windows": "time", "key_as": "string"}, f"{{key_windows}} is for {{key_format}} {ANY}"),
]
CASES = pytest.mark.parametrize(("given", "rule"), BROKEN, ids=[" ".join(given) for given, _ in BROKEN])
VALID: list[dict[str, Any]] = [
    {},
    {**KEYS, "key_reader_schema": SCHEMA, "key_windows": "session", "key_framing": "none"},
    {**VALUES, "reader_schema": SCHEMA, "value_framing": "glue", "key_as": "string"},
    {**KEYS, **VALUES, **SOURCE, "http": GIVEN["http"], "reader_schema": SCHEMA},
    {**SOURCE, "value_format": "protobuf", "messages": ("a.B", "a.C")},
    {**SOURCE, **VALUES, "key_format": "json", "validate": True, "json_integers": "decimal"},
]


def named(rule: str, name: Callable[[str], str]) -> str:
    """A rule with the names of its options."""
    return re.sub(r"\{(\w+)\}", lambda match: name(match[1]), rule)


def split(given: dict[str, Any]) -> tuple[TypedColumns, dict[str, Any]]:
    """The options as an ingest takes them."""
    others = {name: value for name, value in given.items() if name in ("key_as", "value_as")}
    return TypedColumns(**{name: value for name, value in given.items() if name not in others}), others


def in_spark(name: str) -> str:
    return spark_name(flag_of_rule(name))


@pytest.fixture
def flags_for(tmp_path: Path) -> Callable[[dict[str, Any]], list[str]]:
    def flags(given: dict[str, Any]) -> list[str]:
        arguments = []
        for name, value in given.items():
            if value is True:
                arguments.append(flag_of_rule(name))
                continue
            for one in value if isinstance(value, tuple) else (value,):
                if name in ("reader_schema", "key_reader_schema", "http"):
                    path = tmp_path / name
                    path.write_text(one if isinstance(one, str) else "bearer.auth.token=t")
                    one = str(path)
                arguments += [flag_of_rule(name), one]
        return arguments

    return flags


@pytest.fixture
def log(tmp_path: Path) -> Path:
    builder = RecordsBuilder()
    builder.append(0, 1, b"k", b"v")
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(builder.build())
    return partition


def test_every_option_has_a_rule() -> None:
    names = {option.name for option in fields(TypedColumns)} - {"key_format", "value_format"}
    assert set(GIVEN) == names
    for name in names:
        assert broken_rule(TypedColumns(**{name: GIVEN[name]}), {}) is not None, name


@CASES
def test_in_python(given: dict[str, Any], rule: str, log: Path, tmp_path: Path) -> None:
    typed, others = split(given)
    for to_table in ({}, {"format": "delta"}):
        with pytest.raises(RefusedError, match=f"^{re.escape(named(rule, str))}$"):
            magicbyte.ingest(log, tmp_path / "out", typed=typed, **others, **to_table)
    assert not (tmp_path / "out").exists()


@CASES
def test_on_the_command_line(
    given: dict[str, Any], rule: str, log: Path, tmp_path: Path, cli: Cli, flags_for: Any
) -> None:
    arguments = flags_for(given)
    expected = named(rule, flag_of_rule)
    cli("ingest", *arguments, log, tmp_path / "out", code=2)
    assert expected in " ".join(cli.error.split())
    assert not (tmp_path / "out").exists()
    if given.keys() & {"key_as", "value_as", "json_integers"}:
        return
    for command in ("records", "dump"):
        assert cli(command, *arguments, log, code=2) == ""
        assert expected in " ".join(cli.error.split()), command


@CASES
def test_on_spark(given: dict[str, Any], rule: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("bearer.auth.token=t")
    texts = {"http": str(config), "messages": "shop.Cart"}
    options = {
        in_spark(name): texts.get(name, "true" if value is True else value) for name, value in given.items()
    }
    with pytest.raises(OptionError, match=f"^{re.escape(named(rule, in_spark))}$"):
        parse_table(options)


@pytest.mark.parametrize("given", VALID, ids=" ".join)
def test_options_that_go_together(given: dict[str, Any]) -> None:
    typed, others = split(given)
    payloads = {name.removesuffix("_as"): payload for name, payload in others.items()}
    assert broken_rule(typed, typed.formats, payloads) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["records", "dump", "ingest"])
def test_defaults_may_be_given(command: str, log: Path, tmp_path: Path, cli: Cli) -> None:
    out = (tmp_path / "out",) if command == "ingest" else ()
    cli(command, "--key-windows", "auto", "--key-framing", "auto", "--value-framing", "auto", log, *out)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        # Formats without schemas.
        ({"key_format": "utf-8", "key_windows": "time"}, f"--key-windows is for --key-format {ANY}"),
        ({"value_format": "hex", "value_framing": "glue"}, f"--value-framing is for --value-format {ANY}"),
        (
            {"value_format": "base64", **SOURCE},
            f"--schema-registry is for --key-format or --value-format {ANY}",
        ),
        # JSON without a schema, for which options ask.
        (
            {"key_format": "json", "key_windows": "time"},
            "--key-format needs --schema-registry or --key-reader-schema",
        ),
        (
            {"key_format": "json", "value_format": "json", "reader_schema": "{}", "key_framing": "none"},
            "--key-format needs --schema-registry or --key-reader-schema",
        ),
        (
            {"value_format": "protobuf", "messages": ("a.B", "a.C"), **SOURCE},
            "--message can be repeated for typed columns only, not for text",
        ),
    ],
)
def test_in_records(given: dict[str, Any], rule: str, log: Path, cli: Cli, flags_for: Any) -> None:
    assert cli("records", *flags_for(given), log, code=2) == ""
    assert rule in " ".join(cli.error.split())


def test_json_without_a_schema_beside_json_with_one(log: Path, cli: Cli, flags_for: Any) -> None:
    given = {"key_format": "json", "value_format": "json", "reader_schema": "{}", "validate": True}
    (row,) = cli.records(*flags_for(given), log, code=1)
    assert (row["invalidKey"], row["invalidValue"]) == ("k", "v")
    assert "the value" in cli.error
    assert "the key" not in cli.error
    assert not asks_for_schemas(Registry(reader_schema="{}", validate=True), "key")
    assert asks_for_schemas(Registry(validate=True), "key")


def test_batches_have_no_schemas(log: Path, cli: Cli, flags_for: Any) -> None:
    for given in ({**VALUES, **SOURCE}, SOURCE, {"validate": True}):
        cli("records", "--batches", *flags_for(given), log, code=2)
        assert "--batches goes with ranges" in cli.error


def test_names_in_spark_are_those_of_flags() -> None:
    assert in_spark("messages") == "message"
    assert in_spark("http") == "registryConfig"
    assert in_spark("key_reader_schema") == "keyReaderSchema"
    assert in_spark("value_as") == "valueAs"


def test_schemas_that_are_not_text(log: Path, tmp_path: Path, cli: Cli) -> None:
    schema = tmp_path / "schema"
    schema.write_bytes(b"\xff")
    for flag in ("--reader-schema", "--key-reader-schema"):
        cli("records", "--value-format", "avro", flag, schema, log, code=2)
        assert f"Invalid value for '{flag}': not UTF-8" in cli.error
