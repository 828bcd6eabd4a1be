"""Comparisons of formats by `crates/magicbyte-magic3`, which is in no wheel."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from enum import IntFlag
from functools import cache
from pathlib import Path
from typing import Any

from magicbyte import Compression

ROOT = Path(__file__).parents[2]
PROFILE = os.environ.get("PROFILE", "ci")
"""The profile that the program is built with: times need `release`."""


class Idea(IntFlag):
    """A change to the format: a bit of a batch's attributes. See the crate's documentation."""

    NO_RECORD_ATTRIBUTES = 1 << 7
    TAGGED_FIELDS = 1 << 8
    BOTH_TIMESTAMPS = 1 << 9
    BATCH_HEADERS = 1 << 10
    FIELDS_FIRST = 1 << 11
    TWO_SECTIONS = 1 << 12


KIP_931 = Idea.NO_RECORD_ATTRIBUTES


def compare(
    batches: bytes,
    magic: int,
    ideas: Idea = KIP_931,
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
) -> dict[str, Any]:
    """Writes uncompressed magic 2 batches in a format, reads and validates them.

    Returns `records`, `size` (bytes), `inspected` (bytes that validation decompressed), and the times
    `encode_ns`, `decode_ns` and `validate_ns`.
    """
    process = _program()
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"size": len(batches), "magic": magic, "ideas": ideas, "codec": compression, "level": level}
    process.stdin.write(json.dumps(request).encode() + b"\n" + batches)
    process.stdin.flush()
    comparison: dict[str, Any] = json.loads(process.stdout.readline())
    return comparison


@cache
def _program() -> subprocess.Popen[bytes]:
    build = ["cargo", "build", "--quiet", "--profile", PROFILE, "--package", "magicbyte-magic3"]
    subprocess.run(build, cwd=ROOT, check=True)
    program = ROOT / "target" / PROFILE / "compare"
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.kill)
    return process
