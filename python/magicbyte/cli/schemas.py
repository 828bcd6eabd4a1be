"""`magicbyte schemas`: the group, and the commands that show what a registry has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from magicbyte.cli import options
from magicbyte.cli.exits import exit_code
from magicbyte.cli.schema_check import check, lint
from magicbyte.cli.schema_infer import infer
from magicbyte.cli.schema_source import SchemaSource, schema_source
from magicbyte.cli.terminal import print_data, print_line, print_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from magicbyte.jobs.schemas import SchemasReport
    from magicbyte.schema.registry import Registry

__all__ = ["schemas"]


@click.group(short_help="List, print, save and check the schemas of a registry.")
def schemas() -> None:
    """List, print, save and check the schemas of a registry, with or without the registry.

    SRC is one of these:

    \b
    - a directory with the partition _schemas-0 at or below it, or that partition, as a registry reads it
    - a directory with schemas in files, such as `copy` writes, or a JSON map of ids and subjects to files:
      {"7": "orders.avsc", "orders-value": "orders.avsc"}
    - the address of a live registry with the Confluent API (pip install 'magicbyte[registry]')

    \b
    magicbyte schemas list /backup/kafka-logs
    magicbyte schemas show --id 7 /backup/kafka-logs
    magicbyte schemas copy https://registry:8081 schemas/
    magicbyte schemas check orders-value orders.avsc /backup/kafka-logs
    magicbyte schemas lint /backup/kafka-logs
    magicbyte schemas infer clicks /backup/kafka-logs
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")


@click.command("list", short_help="List the versions of all subjects.")
@schema_source
@options.as_json
def list_(source: SchemaSource, as_json: bool) -> int:
    """List the schemas of a registry: each version of a subject is a row.

    Deleted versions are included: data written with them may still be in the log. Schemas that were deleted
    permanently are found by their id as long as the topic has their records. They and schemas that files name
    by an id or a UUID follow the table. A record that is not a registry's is reported, and the rest is read.

    --json also has the texts, references, GUIDs, metadata and rules.

    \b
    magicbyte schemas list /backup/kafka-logs
    magicbyte schemas list --registry-config registry.properties https://registry:8081
    magicbyte schemas list --json schemas/ | jq -r '.subjects[].versions[-1].schema'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports

    report = source.report()
    if as_json:
        reports.print_json(report)
    else:
        _print(report)
    return _report_problems(report["problems"])


@click.command(short_help="Print the text of a schema.")
@schema_source
@click.option("--id", "schema_id", type=int, metavar="N", help="The schema with this id.")
@click.option("--guid", metavar="GUID", help="The schema with this GUID.")
@click.option("--subject", metavar="NAME", help="The latest version of this subject, or --version.")
@click.option("--version", type=click.IntRange(1), metavar="N", help="This version of --subject.")
@click.option("--context", default=".", metavar="NAME", help="The context of --id, such as .test.")
def show(
    source: SchemaSource,
    schema_id: int | None,
    guid: str | None,
    subject: str | None,
    version: int | None,
    context: str,
) -> int:
    """Print the text of one schema, as it was registered.

    \b
    magicbyte schemas show --id 7 /backup/kafka-logs
    magicbyte schemas show --subject orders-value /backup/kafka-logs > orders.avsc
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    if sum(one is not None for one in (schema_id, guid, subject)) != 1 or (version and subject is None):
        raise click.UsageError("expected one of --id, --guid and --subject; --version belongs to --subject")
    registry = source.open()
    text = _text(registry, schema_id, guid, subject, version, context)
    # Not `splitlines`, which also ends lines at characters that a text of JSON may have.
    print_data(*text.removesuffix("\n").split("\n"))
    return _report_problems(registry.problems)


@click.command(short_help="Save all schemas as files.")
@schema_source
@click.argument("out", metavar="OUT", type=click.Path())
def copy(source: SchemaSource, out: str) -> int:
    """Write all schemas as files into the directory OUT, with schemas.json, which describes them.

    OUT is read like the registry itself: a backup of it, or its schemas for a job without a network.

    \b
    magicbyte schemas copy https://registry:8081 schemas/
    magicbyte schemas copy /backup/kafka-logs schemas/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    report = source.report(out)
    print_line(f"{out}: {', '.join(_counts(report)) or 'no schemas'}")
    return _report_problems(report["problems"])


def _counts(report: SchemasReport) -> Iterator[str]:
    """The number of schemas with each kind of name that a source has."""
    from magicbyte.jobs.run.plan import count_of

    if subjects := report["subjects"]:
        yield count_of(len(subjects), "subject")
        yield count_of(sum(len(subject["versions"]) for subject in subjects), "version")
    if ids := len(report["without_subject"]):
        yield f"{count_of(ids, 'schema')} with only an id"
    if uuids := len(report["by_uuid"]):
        yield f"{count_of(uuids, 'schema')} with a UUID"


def _text(
    registry: Registry,
    schema_id: int | None,
    guid: str | None,
    subject: str | None,
    version: int | None,
    context: str,
) -> str:
    from magicbyte.schema.registry import LATEST

    if schema_id is not None:
        return registry.by_id(schema_id, context).text
    if guid is not None:
        return registry.by_guid(guid).text
    return registry.version(subject or "", version or LATEST).schema.text


def _report_problems(problems: list[str]) -> int:
    for problem in problems:
        print_problem(f"magicbyte: {problem}")
    return exit_code(problems)


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
    for schema in report["by_uuid"]:
        print_line(f"UUID {schema['uuid']}: {schema['schema_type']}")


for command in (check, copy, infer, lint, list_, show):
    schemas.add_command(command)
