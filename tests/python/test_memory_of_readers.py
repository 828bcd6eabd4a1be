"""The memory that each reader of foreign bytes takes for its worst input: at most what SECURITY.md says."""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from worst_inputs import READERS, names

HERE = Path(__file__).parent
STUBS = HERE.parent.parent / "python/magicbyte/_stubs"
# Functions of the core that take bytes, and have no worst input here.
OTHERS = {
    # One number, or the bytes that go in.
    "crc32c", "decode_varint", "set_last_offset", "set_partition_leader_epoch", "set_max_timestamp",
    "set_producer_state",
    # What a program writes.
    "write_schema_framing",
    # A batch, decoded as by `read_batches`, and numbers.
    "batches_cost", "check_produce_request", "unpickle_batch",
    # An identifier.
    "parse_schema_framing",
    "split_window",
    # Checked by the sizes of their files: test_memory_bounds.py.
    "producer_snapshot",
}  # fmt: skip


def takes_bytes(function: ast.FunctionDef) -> bool:
    texts = [ast.unparse(one.annotation) for one in function.args.args if one.annotation is not None]
    return any(word in text.split(" | ") for text in texts for word in ("bytes", "Buffer"))


def test_every_reader_has_its_worst_input() -> None:
    functions = {
        one.name
        for stub in STUBS.glob("*.pyi")
        if not stub.name.startswith("compat_")
        for one in ast.parse(stub.read_text()).body
        if isinstance(one, ast.FunctionDef) and takes_bytes(one)
    }
    covered = {name for name in names() if name != "bounded_json"}
    assert covered <= functions
    assert functions - covered == OTHERS


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("name", READERS)
def test_memory(name: str) -> None:
    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    done = subprocess.run(
        [sys.executable, HERE / "worst_inputs.py", name],
        capture_output=True,
        text=True,
        preexec_fn=bounded,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    size, taken = json.loads(done.stdout)
    allowed = READERS[name].allowed(size)
    print(f"{name}: {size:,} bytes of input took {taken:,}, of {allowed:,}")
    assert taken <= allowed, f"{name}: {size:,} bytes of input took {taken:,}, expected at most {allowed:,}"
