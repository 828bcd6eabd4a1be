"""`magicbyte audit`"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.schema_source import http_settings, registry_config
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.audit import AuditOptions

if TYPE_CHECKING:
    from magicbyte.jobs.audit import AuditReport, MisroutedBatch

__all__ = ["audit"]

_SHOWN = 20


@click.command(short_help="Find batches that a producer put into another topic than their own.")
@partition_choice.sources
@partition_choice.choice(prefer=True)
@click.option(
    "--misrouted",
    is_flag=True,
    required=True,
    help="Look for misrouted batches, as Java producers from 2.8 to 4.1.1 could write them.",
)
@click.option(
    "--offsets-out",
    type=options.OutFile(),
    metavar="FILE",
    help="Write the offsets of the findings to this file, for `redact --offsets`: only of those that are more"
    " than possible.",
)
@flags(AuditOptions, "given")
@registry_config
@options.as_json
def audit(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    misrouted: bool,
    offsets_out: str | None,
    given: AuditOptions,
    registry_config: str | None,
    as_json: bool,
) -> int:
    """Find batches below SRC that are in another topic than their own (KAFKA-19012, CVE-2026-35554).

    Java producers from 2.8 to 4.1.1 could overwrite a batch that was still being sent with another batch. The
    CRC of such a batch holds, so that no broker and no consumer notices. All topics of the producers should
    be below SRC: a misrouted batch is mostly also where it belongs.

    The headers of all batches are read, and the records of those that may be copies of each other. A finding
    is proven if the producer's sequence fits in the other topic, and not in this one; likely if more speaks
    for the other topic; possible if it is unknown which of both is the right one. Topics that have many
    batches in common, such as a topic and its retries, share data: they are listed without being a finding.

    \b
    magicbyte audit --misrouted /backup/kafka-logs
    magicbyte audit --misrouted --json /backup/kafka-logs | jq '.misrouted[] | .topic'
    magicbyte audit --misrouted --offsets-out found.json /backup/kafka-logs
    magicbyte redact --offsets found.json /backup/kafka-logs out/
    magicbyte audit --misrouted --schema-registry /backup/kafka-logs /backup/kafka-logs

    Exit codes: 0 nothing was found; 1 there are findings, or something is damaged.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.run.progress import terminal_progress

    given = replace(given, http=http_settings(registry_config))
    report = magicbyte.audit(
        sources, choice=choice, offsets_out=offsets_out, progress=terminal_progress(), **vars(given)
    )
    reports.print_report(report, _print, as_json=as_json)
    return exit_code(report["misrouted_count"] or report["problems"])


def _print(report: AuditReport) -> None:
    from magicbyte.cli.inputs import print_skipped
    from magicbyte.cli.reports import print_problems
    from magicbyte.cli.tables import print_table
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.run.plan import count_of

    if report["misrouted"]:
        heads = ["partition", "first offset", "last offset", "records", "strength", "time", "evidence", "of"]
        print_table(heads, [_row(one) for one in report["misrouted"][:_SHOWN]])
    if (more := report["misrouted_count"] - min(_SHOWN, len(report["misrouted"]))) > 0:
        print_line(f"... and {more:,} more (--json has the first {len(report['misrouted']):,})")
    for shared in report["sharing"]:
        one, other = shared["topics"]
        print_line(
            f"{one} and {other} share data: {shared['batches']:,} of {shared['of_batches']:,} batches of the"
            " smaller one are in both"
        )
    print_skipped(report["skipped"])
    print_problems(report["problems"], report["problems_left_out"])
    counts = ", ".join(f"{count:,} {name}" for name, count in report["by_strength"].items() if count)
    found = f"{report['misrouted_count']:,} misrouted ({counts})" if counts else "none is misrouted"
    print_line(
        f"{count_of(report['batches'] - report['other_batches'], 'batch', 'batches')} in"
        f" {count_of(report['partitions'], 'partition')} of {count_of(report['topics'], 'topic')}: {found}"
    )
    if report["other_batches"]:
        print_line(
            f"{report['other_batches']:,} others are not audited: of old magics, control batches, empty"
        )


def _row(one: MisroutedBatch) -> list[object]:
    from magicbyte.cli.times import time_text

    of = one["belongs_to"]
    return [
        f"{one['topic']}-{one['partition']}",
        one["first_offset"],
        one["last_offset"],
        one["records"],
        one["strength"],
        time_text(one["max_timestamp"]),
        " ".join(one["evidence"]),
        of and f"{of['topic']}-{of['partition']} {of['first_offset']}..{of['last_offset']}",
    ]
