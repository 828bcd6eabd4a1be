"""`magicbyte schemas infer`"""

from __future__ import annotations

import json

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flag
from magicbyte.cli.terminal import print_data, print_problem
from magicbyte.enums import Framing
from magicbyte.options.typed import Registry

__all__ = ["infer"]


@click.command(short_help="Propose a JSON Schema for a topic that has none.")
@click.argument("topic", metavar="TOPIC")
@partition_choice.sources
@click.option("--key", "is_key", is_flag=True, help="Look at the keys, not the values.")
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="The number of records to look at: the first ones of each partition, and more of the others where"
    " one has too few.",
)
@flag(Registry, "key_framing")
@flag(Registry, "value_framing")
@options.as_json
def infer(
    topic: str,
    sources: tuple[str, ...],
    is_key: bool,
    sample: int,
    key_framing: Framing,
    value_framing: Framing,
    as_json: bool,
) -> int:
    """Propose a JSON Schema for the values of TOPIC, from a sample of them.

    Every value of the sample is valid by it, and is read by it: integers beyond 64 bits get limits that make
    their column text. Properties that all objects have are required, and a comment says how many have the
    others. Values that are not JSON are counted. The name of a schema before a value is taken off. The exit
    code is 1 if something could not be read.

    \b
    magicbyte schemas infer clicks /backup/kafka-logs > clicks.json
    magicbyte ingest --topic clicks --value-format json --reader-schema clicks.json /backup/kafka-logs tables/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.schema_infer import infer_schema

    framing = key_framing if is_key else value_framing
    report = infer_schema(sources, topic, is_key=is_key, sample=sample, framing=framing)
    if as_json:
        reports.print_json(report)
    else:
        print_data(*json.dumps(report["schema"], indent=2).split("\n"))
        counts = f"{report['values']:,} of JSON, {report['not_json']:,} others, {report['nulls']:,} nulls"
        print_problem(f"magicbyte: the sample of {topic}: {counts}")
        for problem in report["problems"]:
            print_problem(f"magicbyte: {problem['segment']}: {problem['message']}")
    return exit_code(report["problems"])
