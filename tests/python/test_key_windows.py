"""The windows after keys, in the lines that `records` and `dump` print."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from magicbyte import RecordsBuilder
from test_framings import AVRO, END, START, VALUES

KEYS = {name: VALUES[f"{name} window"][0] for name in ("time", "session")} | {
    "store": VALUES["window store"][0]
}
FIELDS: dict[str, dict[str, int]] = {
    "time": {"key_window_start": START},
    "store": {"key_window_start": START},
    "session": {"key_window_start": START, "key_window_end": END},
}
ALL = pytest.mark.parametrize("windows", FIELDS)


def log_of(folder: Path, *records: tuple[bytes | None, bytes | None], topic: str = "t") -> Path:
    builder = RecordsBuilder()
    for offset, (key, value) in enumerate(records):
        builder.append(offset, 1, key, value)
    partition = folder / f"{topic}-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(builder.build())
    return partition


@pytest.fixture
def given(tmp_path: Path) -> list[Any]:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "7.avsc").write_text(AVRO)
    return ["--key-format", "avro", "--schema-registry", tmp_path / "schemas", "--key-windows"]


@ALL
def test_json_lines(windows: str, given: list[Any], tmp_path: Path, cli: Cli) -> None:
    log = log_of(tmp_path, (KEYS[windows], b"v"), (None, b"v"), (b"\0", b"v"))
    rows = cli.records(*given, windows, log, code=1)
    times = [{name: row[name] for name in FIELDS[windows]} for row in rows]
    assert times == [FIELDS[windows], *[dict.fromkeys(FIELDS[windows])] * 2]
    assert [row["key"] for row in rows] == [{"a": 5}, None, None]
    assert rows[2]["invalidKey"] == "\0"
    assert "too few for the times of a window" in cli.error


@ALL
def test_a_key_that_cannot_be_decoded_has_its_window(
    windows: str, given: list[Any], tmp_path: Path, cli: Cli
) -> None:
    bad = KEYS[windows][:5] + KEYS[windows][6:]
    (row,) = cli.records(*given, windows, log_of(tmp_path, (bad, None)), code=1)
    assert row["key"] is None
    assert {name: row[name] for name in FIELDS[windows]} == FIELDS[windows]


@ALL
@pytest.mark.parametrize("value_format", ["utf-8", "json"])
def test_csv(windows: str, value_format: str, given: list[Any], tmp_path: Path, cli: Cli) -> None:
    values = [b"plain", b'two\r\nlines, "quoted"', b'"', b"\n", b"", None, b'{"a":\n"1,2"}']
    log = log_of(tmp_path, *((KEYS[windows], value) for value in values), (None, None))
    printed = cli(
        "records", *given, windows, "--value-format", value_format, "--format", "csv", log, code=None
    )
    header, *rows = csv.reader(io.StringIO(printed, newline=""))
    names = list(FIELDS[windows])
    assert header[-len(names) :] == names
    shown = [str(time) for time in FIELDS[windows].values()]
    assert [row[-len(names) :] for row in rows] == [shown] * len(values) + [[""] * len(names)]
    assert {len(row) for row in rows} == {len(header)}
    if value_format == "utf-8":
        at = header.index("value")
        assert [row[at] for row in rows] == [(value or b"").decode() for value in values] + [""]


@ALL
def test_dump(windows: str, given: list[Any], tmp_path: Path, cli: Cli) -> None:
    log = log_of(tmp_path, (KEYS[windows], b"v"), (None, b"v"))
    first, second = cli("dump", *given, windows, log).splitlines()[-2:]
    times = "".join(f" {name}: {time}" for name, time in FIELDS[windows].items())
    assert first.endswith(f' key: {{"a":5}}{times} payload: v')
    assert second.endswith("headerKeys: [] payload: v")


@pytest.mark.parametrize("windows", ["auto", "none"])
def test_windows_that_are_not_given_are_not_shown(
    windows: str, given: list[Any], tmp_path: Path, cli: Cli
) -> None:
    log = log_of(tmp_path, (VALUES["apicurio 4"][0], b"v"), *[(KEYS["time"], b"v")] * (windows == "auto"))
    for row in cli.records(*given, windows, log):
        assert row["key"] == {"a": 5}
        assert not {name for name in row if "window" in name}
    assert "window_" not in cli("dump", *given, windows, log)
    header, *_ = cli("records", *given, windows, "--format", "csv", log).splitlines()
    assert header.endswith(",invalidKey")


def test_a_template_has_no_windows(given: list[Any], tmp_path: Path, cli: Cli) -> None:
    log = log_of(tmp_path, (KEYS["time"], b"v"))
    assert cli("records", *given, "time", "-f", "%k %s\\n", log) == '{"a":5} v\n'


def test_windows_beside_typed_values_and_topics_without_schemas(tmp_path: Path, cli: Cli) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for name in ("a-key", "a-value"):
        (schemas / f"{name}.avsc").write_text(AVRO)
    key = b"\x0a" + START.to_bytes(8, "big")
    for topic in ("a", "b"):
        log_of(tmp_path / "logs", (key, b"\x0a"), topic=topic)
    formats = ["--key-format", "avro", "--value-format", "avro", "--key-framing", "none"]
    source = ["--schema-registry", schemas, "--key-windows", "time", tmp_path / "logs"]
    a, b = cli.records(*formats, *source, code=1)
    assert (a["key"], a["value"], a["key_window_start"]) == ({"a": 5}, {"a": 5}, START)
    assert (b["key"], b["value"], b["key_window_start"]) == (None, None, None)
    assert "b: the keys are not decoded: no subject has the name b-key" in cli.error
    printed = cli("records", *formats, *source, "--format", "csv", code=1)
    rows = list(csv.reader(io.StringIO(printed, newline="")))
    assert [row[-1] for row in rows] == ["key_window_start", str(START), ""]
