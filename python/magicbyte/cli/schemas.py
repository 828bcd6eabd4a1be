"""`magicbyte schemas`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.terminal import print_data, print_line, print_problem
from magicbyte.jobs.choice import PartitionChoice

if TYPE_CHECKING:
    from magicbyte.jobs.schemas import SchemasReport
    from magicbyte.schemas.registry import StoredRegistry

__all__ = ["schemas"]


@click.command(short_help="List the schemas of a registry from its topic _schemas, or print one.")
@partition_choice.sources
@partition_choice.preferred_copy
@click.option(
    "--schemas-topic",
    default="_schemas",
    show_default=True,
    metavar="TOPIC",
    help="The registry's topic (kafkastore.topic).",
)
@click.option("--id", "schema_id", type=int, metavar="N", help="Print the text of the schema with this id.")
@click.option("--subject", metavar="NAME", help="Print the text of the subject's latest version.")
@click.option(
    "--context", default=".", metavar="NAME", help="The context that --id counts in, such as .test."
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(),
    help="Write the schemas as files, with schemas.json, which says what they are.",
)
@options.max_decompressed_bytes
@options.as_json
def schemas(
    sources: tuple[str, ...],
    preferred: tuple[str, ...],
    schemas_topic: str,
    schema_id: int | None,
    subject: str | None,
    context: str,
    out: str | None,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """List the schemas that the registry of a cluster had, without the registry.

    The source is the partition _schemas-0 at or below SRC, read as a registry reads it when it starts; or SRC
    is that partition itself. SRC may also be a directory with schemas in files, such as --out writes, or a
    JSON map of ids and subjects to files: {"7": "orders.avsc", "orders-value": "orders.avsc"}.

    Each version of a subject is a row. Deleted ones are among them: data written with them is still in the
    log. Schemas that were deleted for good are found by their id as long as the topic has their records.
    What is not a registry's record is reported, and the rest is read.

    --json also has the texts, references, GUIDs, metadata and rules.

    \b
    magicbyte schemas /backup/kafka-logs
    magicbyte schemas --id 7 /backup/kafka-logs
    magicbyte schemas --subject orders-value /backup/kafka-logs > orders.avsc
    magicbyte schemas --out schemas/ /backup/kafka-logs
    magicbyte schemas --json schemas/ | jq '.subjects[].versions[-1].schema | fromjson'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.schemas import open_registry
    from magicbyte.jobs.schemas import schemas as schemas_job

    choice = PartitionChoice(prefer=preferred)
    if schema_id is not None or subject is not None:
        if as_json or out is not None or (schema_id is not None and subject is not None):
            raise click.UsageError("--id, --subject, --json and --out exclude each other")
        _, registry = open_registry(
            sources,
            schemas_topic=schemas_topic,
            choice=choice,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        # Not `splitlines`, which also ends lines at characters that a text of JSON may have.
        print_data(*_text(registry, schema_id, context, subject).removesuffix("\n").split("\n"))
        return _report_problems(registry.problems)
    report = schemas_job(
        sources,
        out,
        schemas_topic=schemas_topic,
        choice=choice,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    if as_json:
        reports.print_json(report)
    else:
        _print(report)
    return _report_problems(report["problems"])


def _text(registry: StoredRegistry, schema_id: int | None, context: str, subject: str | None) -> str:
    if schema_id is not None:
        return registry.by_id(schema_id, context).text
    return registry.latest(subject or "").schema.text


def _report_problems(problems: list[str]) -> int:
    for problem in problems:
        print_problem(f"magicbyte: {problem}")
    return PROBLEMS if problems else CLEAN


def _print(report: SchemasReport) -> None:
    from magicbyte.cli.tables import print_table

    rows = [
        [
            one["subject"],
            version["version"],
            None if version["id"] is None else str(version["id"]),
            version["schema_type"],
            len(version["references"]),
            one["compatibility"],
            one["mode"],
            "deleted" if version["deleted"] else None,
        ]
        for one in report["subjects"]
        for version in one["versions"]
    ]
    print_table(["subject", "version", "id", "type", "references", "compatibility", "mode", "state"], rows)
    for alias, subject in sorted(report["aliases"].items()):
        print_line(f"alias: {alias} is {subject}")
    for schema in report["without_subject"]:
        place = "" if schema["context"] == "." else f" in the context {schema['context']}"
        print_line(f"no subject: id {schema['id']}{place}, {schema['schema_type']}")
