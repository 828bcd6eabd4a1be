"""The directory that a job writes the log directories of nodes to: `OUT/nodeN/logsM/topic-P`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from magicbyte.jobs.find.outputs import RECONCILIATION
from magicbyte.jobs.publish.certificate import Certify
from magicbyte.jobs.publish.local_partitions import Counted, LocalPartitions, check_counted
from magicbyte.jobs.publish.workspace import sync_tree, write_text

__all__ = ["LocalNodes"]


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
