"""Runs a program without the permission to read everything, which root has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

_CAPABILITIES = "-dac_override,-dac_read_search"


def run_unprivileged(*arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs Python with these arguments, without the capabilities that bypass permissions."""
    command = [sys.executable, *map(str, arguments)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root reads everything, and there is no setpriv")
        command = ["setpriv", "--inh-caps", _CAPABILITIES, "--bounding-set", _CAPABILITIES, *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
