"""The package without those of its extras: calls that need one name it, and every name can be looked up.

The packages are hidden in a subprocess; `scripts/test_wheel.py` does the same in environments without them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = """
import sys

class Hidden:
    names = {"pyarrow", "numpy", "pandas", "polars", "duckdb", "click", "rich", "httpx", "fsspec", "obstore",
             "deltalake", "pyiceberg", "pyspark", "typing_extensions"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
assert not Hidden.names & {name.partition(".")[0] for name in sys.modules}
"""
ARROW = "pyarrow is missing: pip install 'magicbyte[arrow]'"
SQL = "pyarrow is missing: pip install 'magicbyte[sql]'"
DELTA = "pyarrow is missing: pip install 'magicbyte[delta]'"


def bare(code: str, *arguments: str) -> str:
    """The output of a program that can import no package but ours."""
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN + code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def call(code: str, *arguments: str) -> object:
    """The result of an expression over `sys.argv`, or the type and the text of its error, as JSON has it."""
    program = f"""
import json, magicbyte
try:
    shown = {code}
except Exception as error:
    shown = [type(error).__name__, str(error)]
print(json.dumps(shown, default=str))
"""
    result: object = json.loads(bare(program, *arguments))
    return result


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with a partition of ten records, one of its batches damaged."""
    import magicbyte

    directory = tmp_path_factory.mktemp("bare") / "t-0"
    directory.mkdir()
    batches = []
    for base in range(0, 10, 5):
        builder = magicbyte.RecordsBuilder(compression="lz4")
        builder.append_many([(base + n, 1_700_000_000_000, b"k%d" % (n % 2), b"v" * 50) for n in range(5)])
        batches.append(builder.build())
    batches[1] = batches[1][:-1] + bytes([batches[1][-1] ^ 1])
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    return str(directory.parent)


@pytest.mark.parametrize(
    "code",
    [
        "from magicbyte import *; RecordsBuilder, Log, verify, ingest_stream",
        "import inspect, magicbyte; assert len(inspect.getmembers(magicbyte)) >= len(magicbyte.__all__)",
        "import magicbyte; [getattr(magicbyte, name) for name in magicbyte.__all__]",
        "import magicbyte, pydoc; assert 'RecordsBuilder' in pydoc.plain(pydoc.render_doc(magicbyte))",
        "import magicbyte, pydoc\nfor name in {*magicbyte.__all__} - {'__version__'}:\n"
        "    pydoc.render_doc(getattr(magicbyte, name))",
        "import magicbyte.commands, inspect\nfor name in magicbyte.commands.__all__:\n"
        "    assert 'Ellipsis' not in str(inspect.signature(getattr(magicbyte, name)))",
        "import doctest, magicbyte; assert not doctest.testmod(magicbyte).failed",
    ],
)
def test_looking_up(code: str) -> None:
    bare(code)


def test_records_need_nothing(log: str) -> None:
    opened = "magicbyte.PartitionLog(sys.argv[1] + '/t-0', mode='PERMISSIVE')"
    assert call(f"[record.value_bytes.decode() for record in {opened}.records()]", log) == ["v" * 50] * 5


def test_commands_of_plain_data_need_no_arrow(log: str) -> None:
    """The same document as with all packages."""
    import magicbyte

    for name in ("verify", "topics", "explain", "field_costs"):
        expected = json.loads(json.dumps(getattr(magicbyte, name)(log), default=str))
        found = call(f"magicbyte.{name}(sys.argv[1])", log)
        if name == "explain":
            for history in (*expected, *found):  # type: ignore[misc]
                del history["now"]
        assert found == expected, name
    assert call("[len(one['topics']) for one in [magicbyte.advise(sys.argv[1])]]", log) == [1]
    assert "127.0.0.1" in str(call("repr(magicbyte.serve(sys.argv[1], listen='127.0.0.1:0'))", log))
    kind, text = call("magicbyte.offsets(sys.argv[1])", log)  # type: ignore[misc]
    assert (kind, "no partition of __consumer_offsets" in text) == ("RefusedError", True)
    kind, text = call("magicbyte.schemas(sys.argv[1])", log)  # type: ignore[misc]
    assert (kind, "no partition of _schemas" in text) == ("RefusedError", True)


@pytest.mark.parametrize("command", ["convert", "recover", "rescue", "compact", "redact"])
def test_commands_that_write_segments_need_no_arrow(log: str, tmp_path: Path, command: str) -> None:
    keywords = {"compact": "all_topics=True", "redact": "keys=[b'k1']", "convert": "compression='gzip'"}
    arguments = "sys.argv[1], " + ("out=sys.argv[2]" if command == "rescue" else "sys.argv[2]")
    found = call(
        f"[*magicbyte.{command}({arguments}, {keywords.get(command, '')})]", log, str(tmp_path / "out")
    )
    assert isinstance(found, list)
    assert "Error" not in found[0], found
    assert any(tmp_path.rglob("*0.log*" if command != "rescue" else "*"))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("magicbyte.stats(sys.argv[1])", f"stats: {ARROW}"),
        ("magicbyte.ingest(sys.argv[1], sys.argv[2])", f"ingest: {ARROW}"),
        ("magicbyte.ingest(sys.argv[1], sys.argv[2], format='delta')", f"ingest: {DELTA}"),
        ("magicbyte.ingest_stream(sys.argv[1], sys.argv[2], format='delta')", f"ingest_stream: {DELTA}"),
        ("magicbyte.compact(sys.argv[1], sys.argv[2])", f"compact: {ARROW}"),
        ("magicbyte.verify(sys.argv[1], table=sys.argv[2])", f"verify: {ARROW}"),
        ("magicbyte.redact(sys.argv[1], sys.argv[2], where='key is null')", f"where: {SQL}"),
        ("magicbyte.PartitionLog(sys.argv[1] + '/t-0').to_arrow(where='key is null')", f"to_arrow: {SQL}"),
        ("magicbyte.mount_storage('s3://bucket')", "s3:// needs obstore: pip install 'magicbyte[cloud]'"),
    ],
)
def test_what_needs_an_extra_names_it(log: str, tmp_path: Path, code: str, text: str) -> None:
    kind, found = call(code, log, str(tmp_path / "out"))  # type: ignore[misc]
    assert kind in ("ModuleNotFoundError", "MissingPackageError")
    assert text in found
    assert not (tmp_path / "out").exists()


def test_only_missing_packages_of_extras_are_named() -> None:
    from magicbyte.extras import missing_extra, naming_extras

    assert missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None
    for error in (
        ModuleNotFoundError("No module named 'mine'", name="mine"),
        ModuleNotFoundError("an own text", name="pyarrow"),
        ImportError("pyarrow"),
    ):
        with pytest.raises(type(error)) as raised, naming_extras("command"):
            raise error
        assert raised.value is error
