"""`magicbyte schemas check` and `magicbyte schemas lint`"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from magicbyte.cli import options
from magicbyte.cli.exits import exit_code
from magicbyte.cli.schema_source import SchemaSource, schema_source
from magicbyte.cli.terminal import print_line, print_problem
from magicbyte.enums import CompatibilityLevel

if TYPE_CHECKING:
    from magicbyte.jobs.schema_check import CheckedVersion

__all__ = ["check", "lint"]


@click.command(short_help="Say whether a schema may become the next version of a subject.")
@click.argument("subject", metavar="SUBJECT")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@schema_source
@click.option(
    "--compatibility",
    "level",
    type=click.Choice(get_args(CompatibilityLevel), case_sensitive=False),
    help="Check at this level, instead of the subject's own.",
)
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="NAME=SUBJECT:VERSION",
    help="The name in FILE of a version of another subject. May be repeated.",
)
@click.option(
    "--lenient/--strict",
    default=None,
    help="Compare JSON Schemas by the policy LENIENT, by which open objects may get properties, or STRICT,"
    " instead of the subject's own.",
)
@options.as_json
def check(
    subject: str,
    file: str,
    source: SchemaSource,
    level: str | None,
    references: tuple[str, ...],
    lenient: bool | None,
    as_json: bool,
) -> int:
    """Say whether the schema in FILE may become the next version of SUBJECT, as the registry would decide it.

    FILE ends with .avsc (Avro), .json (JSON Schema) or .proto (Protobuf). Each version that the level demands
    is compared, and each incompatibility is listed with its field, its rule and a remedy. The exit code is 1
    if there is any.

    \b
    magicbyte schemas check orders-value orders.avsc /backup/kafka-logs
    magicbyte schemas check --compatibility FULL_TRANSITIVE orders-value orders.avsc https://registry:8081
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.schema_check import check_schema
    from magicbyte.schema.directory import read_schema
    from magicbyte.schema.registry import LOGICAL

    schema = read_schema(file, [_reference(reference) for reference in references])
    report = check_schema(source.open(), subject, schema, level=level, lenient=lenient)
    if as_json:
        reports.print_json(report)
    else:
        if not report["versions"]:
            print_line(f"{subject}: nothing to compare with at the level {report['level']}")
        for version in report["versions"]:
            _print_version(version)
        if report["policy"] == LOGICAL:
            print_line(f"note: the checks that {LOGICAL} adds for tables of Flink and Iceberg are not made")
    return _ended(report["problems"], found=not report["compatible"])


@click.command(short_help="Look for likely problems with the subjects.")
@schema_source
@click.option(
    "--logs",
    multiple=True,
    metavar="DIR",
    type=click.Path(),
    help="Look in all records of the topics below this directory for schemas that are missing. May be"
    " repeated.",
)
@options.as_json
def lint(source: SchemaSource, logs: tuple[str, ...], as_json: bool) -> int:
    """Look for likely problems with the subjects of a registry.

    Finds subjects without a compatibility level, versions that break their level, unrelated types in one
    subject, references to deleted versions, and keys of the registry's topic that say the same. With --logs,
    it also finds ids, GUIDs and fingerprints that keys, values and headers name and no schema has, and says
    which schemas read the values. Bytes that only look like a name are noted, without being a finding. The
    exit code is 1 if there is a finding.

    \b
    magicbyte schemas lint /backup/kafka-logs
    magicbyte schemas lint --logs /backup/kafka-logs schemas/
    magicbyte schemas lint --json https://registry:8081 | jq '.findings[] | select(.rule == "BREAKS_LEVEL")'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.jobs.run.plan import count_of
    from magicbyte.jobs.run.progress import terminal_progress
    from magicbyte.jobs.schema_check import lint_schemas

    report = lint_schemas(source.open(), logs, progress=terminal_progress())
    if as_json:
        reports.print_json(report)
    else:
        for finding in report["findings"]:
            version = "" if finding["version"] is None else f" version {finding['version']}"
            print_line(f"{finding['subject']}{version}: {finding['rule']}: {finding['message']}")
            print_line(f"  remedy: {finding['remedy']}")
        for note in report["notes"]:
            print_line(f"note: {note}")
        counts = f"{report['subjects']} subjects, {len(report['findings'])} findings"
        if logs:
            records, topics = sum(report["examined"].values()), len(report["examined"])
            counts += f"; {count_of(records, 'record')} of {count_of(topics, 'topic')} examined"
        print_line(counts)
    return _ended(report["problems"], found=bool(report["findings"]))


def _reference(text: str) -> tuple[str, str, int]:
    name, equals, place = text.rpartition("=")
    subject, colon, version = place.rpartition(":")
    if not (name and equals and subject and colon and version.isascii() and version.isdigit()):
        raise click.BadParameter(f"{text!r}: expected NAME=SUBJECT:VERSION", param_hint="--reference")
    return name, subject, int(version[:10])


def _print_version(one: CheckedVersion) -> None:
    verdict = "compatible" if one["compatible"] else "incompatible"
    place = "" if one["id"] is None else f" (id {one['id']})"
    print_line(f"version {one['version']}{place}, {one['direction']}: {verdict}")
    if one["error"] is not None:
        print_line(f"  cannot be compared: {one['error']}")
    for why in one["incompatibilities"]:
        print_line(f"  {why['rule']} at {why['path'] or '/'}: {why['message']}")
        print_line(f"    remedy: {why['remedy']}")


def _ended(problems: list[str], *, found: bool) -> int:
    for problem in problems:
        print_problem(f"magicbyte: {problem}")
    return exit_code(problems or found)
