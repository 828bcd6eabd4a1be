"""New logs from old ones: converted, compacted, or without some of the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magicbyte.calls import Run, writes
from magicbyte.options.command_line import command_line
from magicbyte.options.compact import CompactOptions
from magicbyte.options.redact import RedactOptions
from magicbyte.options.rewrite import ConvertOptions

if TYPE_CHECKING:
    from magicbyte.jobs.clean import CleanReport
    from magicbyte.jobs.rewrite import RewriteReport

__all__ = ["compact", "convert", "redact"]


@dataclass(frozen=True, kw_only=True)
class _Convert(Run, ConvertOptions):
    """The keywords of `convert`."""


@writes(_Convert, ConvertOptions)
def convert(sources: list[str], out: str, given: _Convert, options: ConvertOptions) -> RewriteReport:
    """Rewrites every partition into `out`, for a current broker to open."""
    from magicbyte.jobs.rewrite import rewrite

    command = command_line("convert", [*sources, out], options, given.choice) if options.certify else None
    return rewrite(
        sources, out, given.runner, options, choice=given.choice, progress=given.progress, command=command
    )


@dataclass(frozen=True, kw_only=True)
class _Compact(Run, CompactOptions):
    """The keywords of `compact`."""


@writes(_Compact, CompactOptions)
def compact(sources: list[str], out: str, given: _Compact, options: CompactOptions) -> CleanReport:
    """Writes every compacted partition to `out` with only the last record of each key.

    The rules are those of Kafka's `LogCleaner`: whole segments are cleaned, up to the last stable offset and
    without the last segment; everything else is copied.

    Partitions of topics whose `cleanup.policy` does not include `compact` are left out: it is read from
    `__cluster_metadata` in `sources`, or from `topic_config`. So are those that have the brokers' default,
    unless `server_properties` has it. Where nothing is known about a topic, it is compacted if all its
    records have keys.

    Returns:
        What became of every record and byte: the content of `reconciliation.json`.

    Raises:
        RefusedError: if there is nothing to compact, a partition is found twice, `out` is not empty,
            `checkpoint` is not such a file, or a topic whose policy is unknown has records without a key.
        Error: for the first bad batch, with FAILFAST.
        OSError: if a file cannot be read or written.

    """
    from magicbyte.jobs.compact import compact_partitions

    return compact_partitions(sources, out, given.runner, options, given.progress, choice=given.choice)


@dataclass(frozen=True, kw_only=True)
class _Redact(Run, RedactOptions):
    """The keywords of `redact`."""


@writes(_Redact, RedactOptions)
def redact(sources: list[str], out: str, given: _Redact, options: RedactOptions) -> CleanReport:
    """Writes every partition to `out` without the records that must be forgotten.

    No byte of those records is in `out`; everything else stays as it is. The report has the index of each key
    that no record has. An expression needs pyarrow and duckdb; `magicbyte redact --help` has its columns.

    Returns:
        What became of every record and byte, and the offsets (inclusive) that were redacted: the content of
        `reconciliation.json`.

    Raises:
        RefusedError: if nothing is selected, there is nothing to read, the expression is invalid, a
            partition is found twice, or `out` is not empty.
        JobError: if a source changes while it is read, the check finds a key, or the expression fails for a
            record; then nothing is published.
        Error: for the first bad batch, with FAILFAST.
        OSError: if a file cannot be read or written.

    """
    from magicbyte.jobs.redact import redact_partitions

    return redact_partitions(sources, out, given.runner, options, given.progress, choice=given.choice)
