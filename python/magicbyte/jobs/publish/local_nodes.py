"""The directory that a job writes the log directories of nodes to: `OUT/nodeN/logsM/topic-P`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import RECONCILIATION
from magicbyte.jobs.publish.certificate import Certify
from magicbyte.jobs.publish.local_partitions import Counted, LocalPartitions, check_counted
from magicbyte.jobs.publish.workspace import sync_tree, write_text
from magicbyte.storage.paths import is_url

__all__ = ["LocalNodes", "OpenedNodes", "opened_nodes"]


class OpenedNodes(NamedTuple):
    """An output, or what stands for it while nothing is written."""

    output: LocalNodes | None
    path: str
    """The path for the texts of a plan."""
    scratch: Callable[[str], str]
    """Makes a directory for temporary files, which is removed at the end."""


@contextmanager
def opened_nodes(out: str | None, inputs: Sequence[str]) -> Iterator[OpenedNodes]:
    """Opens the output, if there is one.

    Raises:
        RefusedError: `out` is a URL, not empty, or overlaps with an input.

    """
    if out is None:
        with TemporaryDirectory(prefix="magicbyte-restore-") as directory:
            yield OpenedNodes(None, "OUT", lambda name: mkdtemp(prefix=name[:64], dir=directory))
    elif is_url(out):
        raise RefusedError(f"{out}: brokers start on local directories only: choose one")
    else:
        output = LocalNodes(out, inputs)
        with output:
            yield OpenedNodes(output, output.path, output.scratch)


class LocalNodes(LocalPartitions):
    """An output in which a partition may be several times."""

    def publish_nodes(
        self,
        report: Mapping[str, Any],
        written: Sequence[tuple[Counted, Sequence[str]]],
        files: Mapping[str, bytes],
        certify: Certify | None,
    ) -> None:
        """Publishes each partition in its directories, and `files` by path, all relative to the output; the
        report comes last. With `certify`, also publishes the certificate of all of them.

        Raises:
            JobError: a partition is not there as it is counted.

        """
        whole = self._workspace.whole
        for partition, places in written:
            name = f"{partition['topic']}-{partition['partition']}"
            source = self.target(partition)
            *others, last = [os.path.join(whole, place, name) for place in places]
            for target in (*others, last):
                os.makedirs(os.path.dirname(target), exist_ok=True)
            # Every replica has files of its own, since brokers append to them.
            for target in others:
                shutil.copytree(source, target)
            os.rename(source, last)
            for target in (*others, last):
                check_counted(target, partition)
        for path, data in files.items():
            target = os.path.join(whole, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "xb") as file:
                file.write(data)
        sync_tree(whole)
        names = sorted(os.listdir(whole))
        write_text(os.path.join(whole, RECONCILIATION), json.dumps(report, indent=1))
        self._publish([*names, *self._certified(certify), RECONCILIATION])
