"""Repairs of damaged logs and dead clusters."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from magicbyte.calls import Chosen, Path, Run, Tasks, reads, writes
from magicbyte.errors import RefusedError
from magicbyte.options.declare import argument
from magicbyte.options.find import FindOptions
from magicbyte.options.merge import MergeOptions
from magicbyte.options.restore import RestoreOptions
from magicbyte.options.rewrite import RecoverOptions
from magicbyte.options.shared import Decoding

if TYPE_CHECKING:
    from magicbyte.jobs.merging.report import MergeReport
    from magicbyte.jobs.rescue import RescueReport
    from magicbyte.jobs.restore_in_place import InPlaceReport
    from magicbyte.jobs.restoring.report import RestoreReport
    from magicbyte.jobs.restoring.target_report import TargetReport
    from magicbyte.jobs.rewrite import RewriteReport
    from magicbyte.jobs.unnamed.find import FindReport

__all__ = ["find", "merge", "recover", "rescue", "restore"]


@dataclass(frozen=True, kw_only=True)
class _Rescue(Chosen, Decoding):
    """The keywords of `rescue`."""

    out: Path | None = argument("The directory or URL for what can be saved.", default=None)


@reads(_Rescue, Decoding)
def rescue(sources: list[str], given: _Rescue, options: Decoding) -> RescueReport:
    """Examines every damaged range, and saves what can be saved of it into `out`."""
    from magicbyte.jobs.rescue import rescue_partitions

    out = None if given.out is None else os.fsdecode(given.out)
    limit = options.max_decompressed_bytes
    return rescue_partitions(sources, out, max_decompressed_bytes=limit, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Recover(Run, RecoverOptions):
    """The keywords of `recover`."""


@writes(_Recover, RecoverOptions)
def recover(sources: list[str], out: str, given: _Recover, options: RecoverOptions) -> RewriteReport:
    """Writes the good batches of every partition into `out`, with new sidecars."""
    from magicbyte.jobs.recover import recover

    return recover(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Merge(Run, MergeOptions):
    """The keywords of `merge`."""

    out: Path | None = argument(
        "A directory or URL that is new or empty; None to write nothing.",
        default=None,
    )


@reads(_Merge, MergeOptions)
def merge(sources: list[str], given: _Merge, options: MergeOptions) -> MergeReport:
    """Merges the replicas of every partition into one log, which a broker opens.

    The copy whose last batch has the highest leader epoch and offset leads, or that of `choice.prefer`. What
    it has lost is filled from the copies of the same lineage. What others have beyond that is left out, as
    a follower truncates.

    Returns:
        The origin of all bytes, the offsets that no copy has, and what was left out: the content of
        `reconciliation.json`.

    Raises:
        RefusedError: if there is nothing to read, copies are of different topics or clusters, or `out` is not
            empty.
        OSError: if a file cannot be read or written.

    """
    from magicbyte.jobs.merge import merge_partitions

    out = None if given.out is None else os.fsdecode(given.out)
    return merge_partitions(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Restore(Tasks, RestoreOptions):
    """The keywords of `restore`."""

    out: Path | None = argument("A directory that is new or empty; None to write nothing.", default=None)
    planned: Callable[[Any], None] | None = argument(
        "Gets the plan (RestorePlan, with target TargetPlan) before anything is written; what it raises ends"
        " the job.",
        default=None,
    )
    dry_run: bool = argument("Change nothing in place either.", default=False)


@reads(_Restore, RestoreOptions, sources="The log directories of a cluster's nodes, or what they are below.")
def restore(
    sources: list[str], given: _Restore, options: RestoreOptions
) -> RestoreReport | InPlaceReport | TargetReport | None:
    """Makes directories on which the nodes of a dead cluster start, with its ids, offsets and settings.

    `out` gets `nodeN/logsM` for each log directory. The copies of a partition are merged, and every replica
    gets the same log. Everything else is in a snapshot of the metadata, which names the new voters.

    With `target`, another running cluster gets the partitions: `out` gets `brokerN` for each of its brokers
    that has replicas, with a script that puts them into its log directories while it is stopped, and the
    positions of groups. Topics that it lacks, or that have records or other partitions there, are left out.

    With `in_place`, the log directories themselves are restored: the metadata and small files are replaced,
    and copies that are not whole are moved aside, if another one is. `undo` takes that back.

    Returns:
        The plan, and what was written: the content of `reconciliation.json`. None after `undo`.

    Raises:
        RefusedError: there is no metadata of a KRaft cluster, or no `metadata.version` in it; the sources are
            of several clusters; a node or a voter is not there; `until` names a file without offsets, or a
            partition that is not there; the target can take no topic; or `out` is not empty.
        OSError: if a file cannot be read or written, or the target does not answer or refuses.

    """
    out = None if given.out is None else os.fsdecode(given.out)
    if options.in_place or options.undo:
        if out is not None:
            raise RefusedError("in_place and undo change the sources themselves: leave out")
        from magicbyte.jobs.restore_in_place import restore_in_place, undo_in_place

        if options.undo:
            undo_in_place(sources)
            return None
        return restore_in_place(
            sources,
            given.runner,
            options,
            dry_run=given.dry_run,
            planned=given.planned,
            progress=given.progress,
        )
    if options.target is not None:
        from magicbyte.jobs.restore_into import restore_into

        return restore_into(
            sources, out, given.runner, options, planned=given.planned, progress=given.progress
        )
    from magicbyte.jobs.restore import restore

    return restore(sources, out, given.runner, options, planned=given.planned, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Find(Run, FindOptions):
    """The keywords of `find`."""

    out: Path | None = argument("The directory or URL for the partitions that are found.", default=None)


@reads(_Find, FindOptions, sources="Files of any kind, and directories of such files.")
def find(sources: list[str], given: _Find, options: FindOptions) -> FindReport:
    """Finds batches in files that have lost their names, and groups them into partitions.

    A file can be what a recovery tool saved, an entry of `lost+found`, or the image of a disk. The runs of
    batches in them are joined where batches are equal, where a file, a producer or the offsets go on. With
    `out`, each partition becomes a directory; with `like`, it gets its name. `choice` is of `like`.
    """
    from magicbyte.jobs.unnamed.find import find_unnamed

    out = None if given.out is None else os.fsdecode(given.out)
    return find_unnamed(
        sources, out, given.runner, like=options.like, choice=given.choice, progress=given.progress
    )
