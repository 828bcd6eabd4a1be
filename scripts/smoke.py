"""Reads and writes with the installed magicbyte: whatever depends on the machine and the interpreter.

usage: scripts/smoke.py SAMPLES -- the directory of that name in the repository. It runs wherever a wheel may
be installed, so it uses the standard library alone.
"""

from __future__ import annotations

import platform
import sys
import threading
from pathlib import Path
from typing import Any

import magicbyte
from magicbyte import _core

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 2000
NOW = 1_700_000_000_000


def main() -> int:
    """Runs every check; one that fails ends with its traceback."""
    samples = Path(sys.argv[1])
    logs = [magicbyte.PartitionLog(str(path)) for path in sorted(samples.iterdir())]
    records = sum(1 for log in logs for _ in log.records())
    assert records > 500, records
    assert magicbyte.verify(str(samples))["balanced"]
    sizes = {codec: len(check_codec(codec)) for codec in CODECS}
    assert max(sizes.values()) == sizes["none"], sizes
    check_threads()
    check_errors()
    check_capsule(logs[0])
    system = f"{platform.machine()} with {' '.join(platform.libc_ver()).strip() or 'another libc'}"
    print(
        f"magicbyte {magicbyte.__version__}, Python {platform.python_version()} on {system}: "
        f"{records} records, {len(CODECS)} codecs, panics are {check_panic()}"
    )
    return 0


def check_codec(codec: str) -> bytes:
    """Builds a batch in this codec and reads it; returns it."""
    builder = magicbyte.RecordsBuilder(compression=codec)
    builder.append_many([(n, NOW + n, b"key-%d" % (n % 7), b"value %08d" % n) for n in range(RECORDS)])
    built = builder.build()
    (batch,) = magicbyte.read_batches(built)
    assert [record.offset for record in batch] == list(range(RECORDS))
    assert batch[-1].value_bytes == b"value %08d" % (RECORDS - 1)
    return bytes(built)


def check_threads() -> None:
    """Calls that let go of the interpreter's lock, at the same time."""
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(check_codec("zstd")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({*found}) == 1, found


def check_errors() -> None:
    """Damage and wrong arguments are exceptions, which unwind through the compiled code."""
    built = bytearray(check_codec("lz4"))
    built[-1] ^= 1
    raises(magicbyte.CorruptRecordError, lambda: read(bytes(built)))
    raises(magicbyte.NeedMoreBytesError, lambda: read(bytes(built[:100])))
    raises(ValueError, lambda: magicbyte.RecordsBuilder(compression="brotli"))
    raises(TypeError, lambda: magicbyte.read_batches(7))  # type: ignore[arg-type]


def read(batches: bytes) -> list[bytes | None]:
    """The values of all records."""
    return [record.value_bytes for batch in magicbyte.read_batches(batches) for record in batch]


def check_capsule(log: magicbyte.PartitionLog) -> None:
    """Columns leave by Arrow's interface, which needs no package."""
    stream: Any = log.to_arrow()
    assert "arrow_array_stream" in repr(stream.__arrow_c_stream__())


def check_panic() -> str:
    """What a panic becomes; builds with debug assertions can raise one on purpose."""
    panic_next = getattr(_core, "_panic_next", None)
    if panic_next is None:
        return "not raised in a release build"
    panic_next(True)
    raises(magicbyte.InternalError, lambda: magicbyte.crc32c(b"123456789"))
    assert magicbyte.crc32c(b"123456789") == 0xE3069283
    return "errors"


def raises(kind: type[BaseException], call: Any) -> None:
    """Expects an exception of this kind."""
    try:
        found = call()
    except kind:
        return
    raise AssertionError(f"expected {kind.__name__}, not {found!r}")


if __name__ == "__main__":
    sys.exit(main())
