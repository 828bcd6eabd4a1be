"""The job of `magicbyte merge`: replicas of partitions become one log.

find copies -> survey, align (tasks) -> plan, repair (driver) -> write segments (tasks) -> sidecars (driver)
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict

from magicbyte import _core
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import Cluster, read_cluster, read_configs
from magicbyte.jobs.find.copies import copies_of
from magicbyte.jobs.find.partitions import Inputs, find_inputs
from magicbyte.jobs.merging.planning import PlannedMerge, Scratch, plan_merges
from magicbyte.jobs.merging.report import MergeReport, merged_partition, problems_of_merges
from magicbyte.jobs.merging.writing import cleaner_offsets, is_complete, write_merges
from magicbyte.jobs.publish.carried import carried_ids, log_start_checkpoint
from magicbyte.jobs.publish.certificate import certifier
from magicbyte.jobs.publish.local_partitions import PartitionsOutput
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.jobs.rewrite import Rewritten, Written
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.log_dir import CLEANER_OFFSET_CHECKPOINT, format_offset_checkpoint
from magicbyte.options.command_line import command_line
from magicbyte.options.merge import MergeOptions
from magicbyte.options.rewrite import ConvertOptions

__all__ = ["merge_partitions"]


def merge_partitions(
    sources: Sequence[str],
    out: str | None,
    engine: Engine,
    options: MergeOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> MergeReport:
    """Merges the copies of every partition at and below `sources` into `out`; without it, writes nothing.

    Raises:
        RefusedError: if there is nothing to read, copies are of different topics or clusters, or `out` is not
            empty.

    """
    given = read_configs(options)
    inputs = find_inputs(sources, choice, consult={CLUSTER_METADATA})
    cluster = read_cluster(inputs.consulted_partition(CLUSTER_METADATA), given)
    job = _Merge(inputs, choice, cluster, engine, options, progress)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="magicbyte-merge-") as directory:
            return job.report(job.plan(lambda name: tempfile.mkdtemp(prefix=name, dir=directory)), [], [])
    words = [*sources, "--out", out]
    command = command_line("merge", words, options, choice) if options.certify else None
    with partitions_output(out, inputs.paths) as output:
        return job.write(output, command)


class _Merge:
    def __init__(
        self,
        inputs: Inputs,
        choice: PartitionChoice,
        cluster: Cluster,
        engine: Engine,
        options: MergeOptions,
        progress: Progress,
    ) -> None:
        self._inputs = inputs
        self._partitions = copies_of(inputs, choice)
        self._cluster = cluster
        self._engine = engine
        self._options = options
        self._progress = progress
        self._ids = carried_ids(inputs, options.topic_ids)

    def plan(self, scratch: Scratch) -> list[PlannedMerge]:
        """Reads all copies; `scratch` creates directories for repairs."""
        return plan_merges(
            self._partitions,
            self._cluster,
            self._engine,
            scratch,
            max_decompressed_bytes=self._options.max_decompressed_bytes,
            progress=self._progress,
        )

    def write(self, output: PartitionsOutput, command: Sequence[str] | None) -> MergeReport:
        """Writes the merged partitions, and publishes them with the report.

        With `command`, the output gets a certificate, which names it.
        """
        merges = self.plan(output.scratch)
        copied = ConvertOptions(
            magic=None,
            max_decompressed_bytes=self._options.max_decompressed_bytes,
            index_interval_bytes=self._options.index_interval_bytes,
            leader_epoch=self._options.leader_epoch,
        )
        rewritten, written = write_merges(merges, output, self._ids, self._engine, copied, self._progress)
        report = self.report(merges, rewritten, written)
        listings = (listing for merge in merges for listing in merge.partition.listings)
        certify = certifier(command, report, listings, self._engine, self._progress)
        files = log_start_checkpoint(written)
        if cleaned := cleaner_offsets(merges):
            files[CLEANER_OFFSET_CHECKPOINT] = format_offset_checkpoint(cleaned)
        output.commit(report, files, certify=certify)
        return report

    def report(
        self,
        merges: Sequence[PlannedMerge],
        rewritten: Sequence[Sequence[Rewritten]],
        written: list[Written],
    ) -> MergeReport:
        """The report of the partitions that were planned and, if there are any, written."""
        partitions = [merged_partition(merge) for merge in merges]
        complete = all(map(is_complete, merges, rewritten))
        options = {name: value for name, value in asdict(self._options).items() if value not in (None, {})}
        for name in ("topic_config", "server_properties"):
            options.pop(name, None)
        return MergeReport(
            magicbyte=_core.__version__,
            sources=list(self._inputs.sources),
            options=options,
            balanced=complete and all(partition["balanced"] for partition in partitions),
            partitions=partitions,
            skipped=self._inputs.skipped,
            written=written,
            **problems_of_merges(merges, [task for done in rewritten for task in done]),
        )
