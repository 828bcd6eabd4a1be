"""`magicbyte rescue`"""

from __future__ import annotations

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.shared import Decoding

__all__ = ["rescue"]


@click.command(short_help="Show what is damaged, and save what can be saved.")
@partition_choice.sources_and_out
@partition_choice.choice(prefer=True)
@flags(Decoding, "given")
@options.as_json
def rescue(
    sources: tuple[str, ...],
    out: str | None,
    choice: PartitionChoice,
    given: Decoding,
    as_json: bool,
) -> int:
    """Show what is damaged at and below SRC, and save what can be saved into the new directory OUT.

    Each quarantined range yields its bytes; a repair, if a flipped bit, a wrong length or a wrong
    magic explains the damage and the CRC is then correct (above 64 KiB that is a guess, and saved
    separately); and the records before the damage in an uncompressed batch, which are suspects, as they may
    be damaged too. With only one argument, or with --dry-run, nothing is written. SRC is only read. OUT may
    be a URL.

    \b
    magicbyte rescue /backup/kafka-logs/orders-0             what could be saved?
    magicbyte rescue /backup/kafka-logs/orders-0 saved/
      saved/orders-0/raw/00000000000000000000.log.4096-8192.bin     the bytes as they are
      saved/orders-0/suspects.jsonl                                 key and value in base64
      saved/orders-0/repaired/00000000000000000000.log              a copy of the segment, repaired
      saved/orders-0/guesses/00000000000000000000.log.9000-99000.bin    a batch whose repair is a guess
      saved/rescue.json                                             the report, written last

    Exit codes: 0 nothing is damaged, 1 something is.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.cli.inputs import print_skipped
    from magicbyte.cli.terminal import print_line

    report = magicbyte.rescue(sources, out=out, choice=choice, **vars(given))
    if as_json:
        reports.print_json(report)
    else:
        for one in report["ranges"]:
            result = f"{one['suspects']:,} suspect records"
            if one["repair"] is not None:
                done = "repaired" if out is not None else "can be repaired"
                how = done if one["repair_is_proven"] else "may be repaired"
                result = f"{how} by changing {one['repair']}"
            print_line(f"{one['segment']} bytes {one['start']:,}-{one['end']:,}: {one['kind']}; {result}")
        if report["ranges_left_out"]:
            print_line(f"... and {report['ranges_left_out']:,} more")
        for problem in report["problems"]:
            place = f"{problem['topic']}-{problem['partition']}/{problem['segment'] or ''}"
            print_line(f"{place}: {problem['kind']}; {problem['message']}")
        print_skipped(report["skipped"])
        count = len(report["ranges"]) + report["ranges_left_out"]
        print_line(
            f"{count:,} damaged ranges, {report['repairable']:,} repairable,"
            f" {report['guesses']:,} with a guess, {report['suspects']:,} suspect records"
        )
    return exit_code(report["ranges"] or report["problems"])
