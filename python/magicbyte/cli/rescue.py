"""`magicbyte rescue`"""

from __future__ import annotations

import click

from magicbyte.cli import options
from magicbyte.cli.exits import CLEAN, PROBLEMS

__all__ = ["rescue"]


@click.command(short_help="See what is damaged, and save what can be saved.")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--out", type=click.Path(file_okay=False), help="Write what can be saved into this new directory."
)
@options.max_decompressed_bytes
@options.as_json
def rescue(sources: tuple[str, ...], out: str | None, max_decompressed_bytes: int, as_json: bool) -> int:
    """Look at what is damaged in SRC, and save what can be saved. The sources are only read.

    For each quarantined range: its bytes; a repair, if one flipped bit, a wrong length or a wrong
    magic explains the damage and the CRC then holds (above 64 KiB that is a guess, and kept
    apart); and the records before the damage of an uncompressed batch, which are suspects: they may
    be changed, too.

    \b
    magicbyte rescue /backup/kafka-logs/orders-0             what could be saved?
    magicbyte rescue /backup/kafka-logs/orders-0 --out saved/
      saved/orders-0/raw/00000000000000000000.log.4096-8192.bin     the bytes as they are
      saved/orders-0/suspects.jsonl                                 key and value in base64
      saved/orders-0/repaired/00000000000000000000.log              a copy of the segment, repaired
      saved/orders-0/guesses/00000000000000000000.log.9000-99000.bin    a batch whose repair is a guess
      saved/rescue.json                                             the report: all of it is there

    Exit codes: 0 nothing is damaged, 1 something is.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.rescue import rescue_partitions

    found = rescue_partitions(sources, out, max_decompressed_bytes=max_decompressed_bytes)
    if as_json:
        report.print_json(found)
    else:
        for one in found["ranges"]:
            saved = f"{one['suspects']:,} suspect records"
            if one["repair"] is not None:
                how = "repaired" if one["repair_is_proven"] else "may be repaired"
                saved = f"{how} by changing {one['repair']}"
            print_line(f"{one['segment']} bytes {one['start']:,}-{one['end']:,}: {one['kind']}; {saved}")
        if found["ranges_left_out"]:
            print_line(f"... and {found['ranges_left_out']:,} more")
        for problem in found["problems"]:
            place = f"{problem['topic']}-{problem['partition']}/{problem['segment'] or ''}"
            print_line(f"{place}: {problem['kind']}; {problem['message']}")
        count = len(found["ranges"]) + found["ranges_left_out"]
        print_line(
            f"{count:,} damaged ranges, {found['repairable']:,} repairable,"
            f" {found['guesses']:,} with a guess, {found['suspects']:,} suspect records"
        )
    return PROBLEMS if found["ranges"] or found["problems"] else CLEAN
