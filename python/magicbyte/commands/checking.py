"""Checks of logs, and comparisons."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from magicbyte.calls import Chosen, Path, Run, reads
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.audit import AuditOptions
from magicbyte.options.declare import argument
from magicbyte.options.diff import DiffOptions
from magicbyte.options.read import ExplainOptions, VerifyOptions
from magicbyte.options.shared import Decoding

if TYPE_CHECKING:
    from magicbyte.jobs.audit import AuditReport
    from magicbyte.jobs.comparing.side import TableOfRecords
    from magicbyte.jobs.dead_letters import DeadLettersReport
    from magicbyte.jobs.diff import DiffReport
    from magicbyte.jobs.find.choice import PartitionChoice
    from magicbyte.jobs.verify import VerifyReport
    from magicbyte.model import PartitionHistory

__all__ = ["audit", "dead_letters", "diff", "explain", "verify"]


@dataclass(frozen=True, kw_only=True)
class _Verify(Run, VerifyOptions):
    """The keywords of `verify`."""


@reads(_Verify, VerifyOptions)
def verify(sources: list[str], given: _Verify, options: VerifyOptions) -> VerifyReport:
    """Decodes every record and accounts for every byte; writes nothing.

    With `table`, an output of `ingest` in any format, also compares its rows with the records. Isolation
    level, ranges and expression are then those of the table.
    """
    from magicbyte.jobs.verify import verify

    table = None
    if options.table is not None:
        from magicbyte.lake.compare import LogOfTable
        from magicbyte.lake.read import open_stored

        stored = open_stored(os.fsdecode(options.table), options.catalog, options.catalog_properties)
        table = partial(LogOfTable, stored)
    return verify(sources, given.runner, options, choice=given.choice, table=table, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Diff(Run, DiffOptions):
    """The keywords of `diff`."""


@reads(_Diff, DiffOptions, sources="The two directories, files, archives, URLs, running clusters or tables.")
def diff(sources: list[str], given: _Diff, options: DiffOptions) -> DiffReport:
    """Compares the records of two sides, partition by partition.

    Records are equal if offset, timestamp, key, value and headers are, and both or none are control records;
    codec, magic and batches make no difference. A side is a log, a running cluster (`kafka://host:9092`), or
    a table of `ingest`: Parquet, Delta, or with a catalog the identifier of an Iceberg table. Backups and
    tables are compared as far as they go.

    Returns:
        The partitions and ranges of offsets in which records differ; `equal` is True if there are none.

    """
    from magicbyte.jobs.diff import diff

    return diff(
        sources,
        given.runner,
        options,
        given.progress,
        choice=given.choice,
        open_table=partial(_open_table, options=options),
    )


def _open_table(source: str, choice: PartitionChoice, options: DiffOptions) -> TableOfRecords | None:
    """Opens a table as a side of `diff`; None for a path or URL that is none."""
    from magicbyte.jobs.find.outputs import is_table
    from magicbyte.storage.paths import is_stored

    is_directory = is_table(source)
    if not is_directory and (options.catalog is None or is_stored(source) or os.path.lexists(source)):
        return None
    from magicbyte.lake.read import open_stored
    from magicbyte.lake.table_side import TableSide

    catalog = None if is_directory else options.catalog
    return TableSide(open_stored(source, catalog, options.catalog_properties), choice)


@dataclass(frozen=True, kw_only=True)
class _Explain(Run, ExplainOptions):
    """The keywords of `explain`."""


@reads(_Explain, ExplainOptions)
def explain(sources: list[str], given: _Explain, options: ExplainOptions) -> list[PartitionHistory]:
    """The history of every partition, from the headers of its batches."""
    from magicbyte.jobs.explain import explain

    return explain(sources, given.runner, options, choice=given.choice, progress=given.progress)


@dataclass(frozen=True, kw_only=True)
class _Audit(Chosen, AuditOptions):
    """The keywords of `audit`."""

    offsets_out: Path | None = argument(
        "The file for the offsets of the findings, for `redact`; only of those that are more than possible.",
        default=None,
    )
    progress: Progress = argument("The receiver of progress.", default=NO_PROGRESS)


@reads(_Audit, AuditOptions)
def audit(sources: list[str], given: _Audit, options: AuditOptions) -> AuditReport:
    """Finds batches that a producer put into another topic than their own (KAFKA-19012, CVE-2026-35554).

    Reads the headers of all batches, and the records of those that may be copies of each other. Topics that
    have many batches in common are reported as topics that share data. Runs in threads of this process.
    """
    from magicbyte.jobs.audit import audit_misrouted

    return audit_misrouted(
        sources,
        options,
        offsets_out=None if given.offsets_out is None else os.fsdecode(given.offsets_out),
        choice=given.choice,
        progress=given.progress,
    )


@dataclass(frozen=True, kw_only=True)
class _DeadLetters(Run, Decoding):
    """The keywords of `dead_letters`."""


@reads(_DeadLetters, Decoding)
def dead_letters(sources: list[str], given: _DeadLetters, options: Decoding) -> DeadLettersReport:
    """Joins the records of dead-letter queues to the records that they are of, wherever these are in the
    sources; `choice` selects the queues, whose records are decoded.

    It is `magicbyte explain --dead-letters`.
    """
    from magicbyte.jobs.dead_letters import dead_letters

    return dead_letters(sources, given.runner, options, choice=given.choice, progress=given.progress)
