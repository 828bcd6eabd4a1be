"""The commands that run a job as functions: `magicbyte verify` is `magicbyte.verify`, and so on.

>>> import magicbyte
>>> report = magicbyte.verify("samples")
>>> report["balanced"], report["total"]["rows"] > 0
(True, True)

The first argument names directories with partitions anywhere below them, or segment files; they are only
read. The keywords are the options of the commands, and `choice`, `engine` and `progress`; `help` on a
function lists them. Times are in milliseconds since 1970. Every function returns the document that its
command prints with `--json`.

Every function raises `ValueError` for a keyword whose value is not of its kind or out of range;
`RefusedError` if there is nothing to read, a path does not exist, or the arguments contradict each other;
`JobError` if the job fails; `OSError` if a file cannot be read or written.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magicbyte.commands.changing import compact, convert, redact
    from magicbyte.commands.checking import audit, dead_letters, diff, explain, verify
    from magicbyte.commands.learning import advise, field_costs, stats
    from magicbyte.commands.reading import backup, cluster, ingest, offsets, schemas, serve, topics
    from magicbyte.commands.repairing import find, merge, recover, rescue, restore

__all__ = [
    "advise",
    "audit",
    "backup",
    "cluster",
    "compact",
    "convert",
    "dead_letters",
    "diff",
    "explain",
    "field_costs",
    "find",
    "ingest",
    "merge",
    "offsets",
    "recover",
    "redact",
    "rescue",
    "restore",
    "schemas",
    "serve",
    "stats",
    "topics",
    "verify",
]

# Imported when they are first used: each has the options of its job.
_MODULES = {
    "changing": ("compact", "convert", "redact"),
    "checking": ("audit", "dead_letters", "diff", "explain", "verify"),
    "learning": ("advise", "field_costs", "stats"),
    "reading": ("backup", "cluster", "ingest", "offsets", "schemas", "serve", "topics"),
    "repairing": ("find", "merge", "recover", "rescue", "restore"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        found = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
