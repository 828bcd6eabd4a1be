"""`magicbyte find`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.options.find import FindOptions

if TYPE_CHECKING:
    from magicbyte.jobs.unnamed.find import FindReport

__all__ = ["find"]

_SHOWN = 20


@click.command(short_help="Find batches in files without a name, and the partitions they are of.")
@partition_choice.local_sources
@partition_choice.out_option
@flags(FindOptions, "given")
@flags(EngineChoice, "engine")
@options.as_json
def find(
    sources: tuple[str, ...], out: str | None, given: FindOptions, engine: EngineChoice, as_json: bool
) -> int:
    """Find batches in SRC, which are files of any kind and directories of such files: what photorec saved,
    lost+found, the image of a disk.

    Whole batches are found wherever they are. They belong to one partition where replicas have equal ones,
    where a file, a producer's sequence or the offsets go on; evidence for two places joins nothing. Those of
    which a replica or a neighbour is below --like get its name, the others are unknown-0, unknown-1, ... by
    size. With --out they become directories that every command reads. SRC is only read.

    \b
    magicbyte find /mnt/lost+found                                  what is there?
    magicbyte find recup_dir.*/ --like /backup/kafka-logs --out found/
    magicbyte find sdb.img --out found/ && magicbyte verify found/

    Exit codes: 0 all was read, 1 something could not be read or does not decode.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open(f"magicbyte find {sources[0]}") as runner:
        report = magicbyte.find(sources, out=out, engine=runner, progress=terminal_progress(), **vars(given))
    if as_json:
        reports.print_json(report)
    else:
        _print(report, out)
    return exit_code(report["unread"] or report["problems"])


def _print(report: FindReport, out: str | None) -> None:
    from magicbyte.cli import reports
    from magicbyte.cli.overview import print_next
    from magicbyte.cli.tables import print_table
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.run.plan import count_of

    rows = [
        [
            f"{one['topic']}-{one['partition']}",
            one["first_offset"],
            one["last_offset"],
            sum(last - first + 1 for first, last in one["missing"]),
            sum(run["batches"] for run in one["runs"] if not run["is_copy"]),
            len(one["runs"]),
            len({run["file"] for run in one["runs"]}),
            "; ".join(one["reasons"]),
        ]
        for one in report["partitions"]
    ]
    heads = ["partition", "first", "last", "missing", "batches", "runs", "files", "joined by"]
    print_table(heads, rows)
    for one in report["partitions"]:
        if one["branch_of"] is not None:
            print_line(
                f"{one['topic']}-{one['partition']} has other batches than {one['branch_of']} at the same"
                " offsets: it is another branch of it, was cleaned at another time, or is another topic"
            )
    batches = sum(file["batches"] for file in report["files"])
    print_line(f"{batches:,} batch{'' if batches == 1 else 'es'} in {count_of(len(report['files']), 'file')}")
    if report["other_files"]:
        print_line(f"{count_of(report['other_files'], 'other file')} without a whole batch")
    if values := sum(file["values"] for file in report["files"]):
        print_line(f"{count_of(values, 'run')} inside values of damaged records are left out")
    for file in report["unread"][:_SHOWN]:
        print_line(f"{file['file']}: {file['reason']}")
    if len(report["unread"]) > _SHOWN:
        print_line(f"... and {len(report['unread']) - _SHOWN:,} more files (--json has all)")
    reports.print_problems(report["problems"], report["problems_left_out"])
    if out is None:
        print_line("nothing was written: give --out")
    else:
        print_next("magicbyte", "verify", out)
