"""The jobs of `magicbyte schemas check` and `schemas lint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.schema_orphans import LogFindings, orphaned_ids
from magicbyte.model.listings import Problem
from magicbyte.schema.compatibility.check import LEVELS, check, remedy
from magicbyte.schema.lint import LintFinding, lint
from magicbyte.schema.registry import LENIENT, STRICT, Registry, Schema

__all__ = ["CheckReport", "CheckedVersion", "LintReport", "check_schema", "lint_schemas"]


class CheckedVersion(TypedDict):
    """The result of a check of the new schema against one version of the subject, in one direction."""

    version: int
    id: int | None
    direction: str
    """`BACKWARD`: the new schema reads what the version wrote. `FORWARD`: the other way."""
    compatible: bool
    incompatibilities: list[dict[str, Any]]
    """`rule`, `path`, `message` and `remedy` of each."""
    error: str | None
    """The reason why the schemas cannot be compared, or None."""


class CheckReport(TypedDict):
    """The output of `magicbyte schemas check --json`."""

    subject: str
    level: str
    policy: str
    """`STRICT`, `LENIENT` or `LOGICAL`: the policy of the subject, or the one that was asked for."""
    compatible: bool
    versions: list[CheckedVersion]
    problems: list[str]
    """Problems with reading the registry."""


class LintReport(TypedDict):
    """The output of `magicbyte schemas lint --json`."""

    subjects: int
    findings: list[LintFinding]
    notes: list[str]
    """The parts of the logs that were not examined, and what is too uncertain for a finding."""
    examined: dict[str, int]
    """The number of records that were examined in the logs, by topic."""
    problems: list[str]
    """Problems with reading the registry, or the logs."""


def check_schema(
    registry: Registry,
    subject: str,
    schema: Schema,
    *,
    level: str | None = None,
    lenient: bool | None = None,
) -> CheckReport:
    """Checks if a schema may become the next version of a subject; for the arguments see `check`.

    Raises:
        RefusedError: if the level is unknown.
        InvalidSchemaError: if the schema is not one of its type, or its type cannot be checked.
        SchemaReferenceError: if its references lead to itself, or nowhere.

    """
    rules = registry.rules(subject)
    level = rules.level if level is None else level
    if level not in LEVELS:
        raise RefusedError(
            f"the compatibility level {level!r} is unknown: expected one of {', '.join(LEVELS)}"
        )
    verdicts = check(registry, subject, schema, level, lenient=lenient)
    versions = [
        CheckedVersion(
            version=verdict.version.version,
            id=verdict.version.id,
            direction=verdict.direction,
            compatible=verdict.compatible,
            incompatibilities=[
                {
                    "rule": why.rule,
                    "path": why.path,
                    "message": why.message,
                    "remedy": remedy(schema.schema_type, why.rule, verdict.direction),
                }
                for why in verdict.incompatibilities
            ],
            error=verdict.error,
        )
        for verdict in verdicts
    ]
    return CheckReport(
        subject=subject,
        level=level,
        policy=rules.policy if lenient is None else LENIENT if lenient else STRICT,
        compatible=all(verdict.compatible for verdict in verdicts),
        versions=versions,
        problems=registry.problems,
    )


def lint_schemas(
    registry: Registry,
    logs: Sequence[str] = (),
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> LintReport:
    """Looks for likely problems with the subjects of a registry, and for schemas that are missing of those
    that keys and values in `logs` name.

    Raises:
        RefusedError: if `logs` have no partition.
        OSError: if they cannot be read.

    """
    stored = registry.snapshot()
    unread: list[Problem] = []
    in_logs = LogFindings([], [], {})
    if logs:
        in_logs = orphaned_ids(stored, logs, unread, choice, progress)
    return LintReport(
        subjects=len(stored.subjects()),
        findings=lint(stored) + in_logs.findings,
        notes=in_logs.notes,
        examined=in_logs.examined,
        problems=[
            *stored.problems,
            *(f"{problem['topic']}-{problem['partition']}: {problem['message']}" for problem in unread),
        ],
    )
