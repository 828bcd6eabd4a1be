"""Processes that are forked from one that has loaded Python and the package: they begin at once.

What a test kills, or runs twice at the same time, needs a process. To import the package takes longer than
most of the jobs, and a process that is killed meanwhile has shown nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import util
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

__all__ = ["load", "start", "start_command"]

_SERVER = multiprocessing.get_context("forkserver")
_LOADED: list[str] = []
# Made now, since tests have temporary directories of their own, in which the path of a socket would be too long.
util.get_temp_dir()


def load(*modules: str) -> None:
    """Names modules that are loaded before any process begins. They must be importable from `sys.path`."""
    _LOADED.extend(modules)
    _SERVER.set_forkserver_preload(_LOADED)


# Commands import most of these only when they run.
_OF_COMMANDS = ["cli.app", "storage.backends", "storage.file_systems"]
_OF_COMMANDS += [f"cli.{name}" for name in ("backup", "ingest", "merge", "recover", "restore", "verify")]
_OF_COMMANDS += [f"commands.{name}" for name in ("changing", "checking", "reading", "repairing")]
_OF_COMMANDS += [f"jobs.{name}" for name in ("compact", "ingest", "redact", "rescue", "rewrite")]
_OF_COMMANDS += ["jobs.publish.stored_job"]
load("forked", "fsspec", *(f"magicbyte.{name}" for name in _OF_COMMANDS))


def start(function: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Calls a function of a module in a new process, which sees today's environment variables."""
    process = _SERVER.Process(target=_call, args=(dict(os.environ), function, *arguments))
    # The first one starts the process that is forked.
    path = os.pathsep.join(filter(None, sys.path))
    with mock.patch.dict(os.environ, PYTHONPATH=path):
        process.start()
    return process


def start_command(arguments: Sequence[object], output: Path | None = None) -> BaseProcess:
    """Runs a command line; its outputs go to a file, if one is given. Exits with the command's code."""
    return start(_command, [str(one) for one in arguments], output and str(output))


def _call(environment: dict[str, str], function: Callable[..., Any], *arguments: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    function(*arguments)


def _command(arguments: list[str], output: str | None) -> None:
    from magicbyte.cli import main

    with open(output or os.devnull, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
