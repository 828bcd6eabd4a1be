"""Directories changed at random (names, kinds of files, permissions, links, sidecars) through every command:
each name is in exactly one list, the sums hold, the exit code is right, nothing hangs.

By hand, with other seeds and for longer, as a user without permission to read everything:

    python tests/python/hostile_directories.py samples tests/data/kafka /tmp/scratch 1000 5000
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import KAFKA
from hostile_directories import remove_tree
from unprivileged import run_unprivileged

SAMPLES = Path(__file__).parents[2] / "samples"
ROUNDS = 40


@pytest.mark.skipif(sys.platform != "linux", reason="makes FIFOs and sockets, and forbids files")
def test_changed_directories(tmp_path: Path) -> None:
    program = Path(__file__).with_name("hostile_directories.py")
    try:
        done = run_unprivileged(program, SAMPLES, KAFKA, tmp_path, 0, ROUNDS, timeout=600)
    finally:
        remove_tree(tmp_path)
    assert done.returncode == 0, done.stderr[-6000:]
