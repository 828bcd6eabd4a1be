"""A part of `magicbyte verify`: compares an output with its certificate."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, Literal, TypedDict, cast

from magicbyte import _core
from magicbyte.bounded_json import loads
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.jobs.publish.certificate import (
    CERTIFICATE,
    Certificate,
    CertifiedFile,
    CertifiedPartition,
    digest_of,
)
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import count_of
from magicbyte.jobs.run.progress import Progress, format_bytes
from magicbyte.storage.location import DirectoryEntry, Location, locate

__all__ = ["CertificateCheck", "Difference", "check_certificate", "read_certificate"]


class Difference(TypedDict):
    """A file that is not as the certificate says."""

    file: str
    """The path in the output, with `/` between names."""
    found: Literal["missing", "changed", "unexpected"]
    """`unexpected`: it is beside certified files, or it is a partition or a checkpoint at the top, where a
    broker would follow it.
    """
    expected_sha256: str | None
    sha256: str | None


class CertificateCheck(TypedDict):
    """The comparison of an output with its certificate."""

    file: str
    """The path of the certificate."""
    certificate: Certificate
    equal: bool
    """True if there is no difference."""
    differences: list[Difference]


def read_certificate(path: str | PathLike[str]) -> Certificate:
    """Reads a certificate.

    Raises:
        RefusedError: if the file is not a certificate.
        OSError: if it cannot be read.

    """
    shown = os.fsdecode(path)
    with locate(shown).open(1 << 20) as file:
        text = file.read()
    try:
        document = loads(text)
        _check(document)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{shown} is no certificate of magicbyte: {error}") from None
    return cast(Certificate, document)


def check_certificate(
    path: str | PathLike[str], sources: Sequence[str], engine: Engine, progress: Progress
) -> CertificateCheck:
    """Compares the only source with a certificate: every file that is certified, and no other beside it.

    Raises:
        RefusedError: if there are several sources, or the file is not a certificate, or one of no file.
        OSError: if a file that is there cannot be read.

    """
    certificate = read_certificate(path)
    if len(sources) != 1:
        raise RefusedError("certificate: give one source, the output that is certified")
    outputs = certificate["outputs"]
    if not outputs:
        raise RefusedError(f"{os.fsdecode(path)} certifies no file: nothing can be compared with it")
    sizes = [file["size"] for file in outputs.values()]
    found = engine.map(
        partial(_digest_below, sources[0]),
        list(outputs),
        name=f"magicbyte certificate: {count_of(len(outputs), 'file')}, {format_bytes(sum(sizes))}",
        sizes=sizes,
        progress=progress,
    )
    differences = [
        Difference(
            file=name,
            found="missing" if digest is None else "changed",
            expected_sha256=file["sha256"],
            sha256=digest,
        )
        for (name, file), digest in zip(outputs.items(), found, strict=True)
        if digest != file["sha256"]
    ]
    differences += [
        Difference(file=name, found="unexpected", expected_sha256=None, sha256=None)
        for name in _unexpected(sources[0], outputs)
    ]
    return CertificateCheck(
        file=os.fsdecode(path), certificate=certificate, equal=not differences, differences=differences
    )


def _digest_below(directory: str, name: str) -> str | None:
    """The digest of a file; None if it is not there."""
    location = locate(directory).below(name)
    if not location.exists() or location.is_directory():
        return None
    return digest_of(location.path)["sha256"]


def _unexpected(directory: str, outputs: Mapping[str, CertifiedFile]) -> list[str]:
    """Other entries in the directories of certified files. At the top, where there are also signatures and
    files of a running broker, only those count that decide what a broker serves.
    """
    parents: set[str] = set()
    for name in outputs:
        while (name := name.rpartition("/")[0]) and name not in parents:
            parents.add(name)
    top = locate(directory)
    others = [entry for entry in sorted(top.entries()) if entry.name not in {*parents, *outputs}]
    below = [
        name
        for parent in sorted(parents)
        if top.below(parent).is_directory()
        for entry in sorted(top.below(parent).names())
        if (name := f"{parent}/{entry}") not in parents and name not in outputs
    ]
    return [entry.name for entry in others if _is_served(top, entry)] + below


def _is_served(top: Location, entry: DirectoryEntry) -> bool:
    """True for what a broker follows in its log directory: partitions, its checkpoints, and whose it is."""
    name = entry.name
    if name in _OF_BROKERS or name.endswith("checkpoint"):
        return True
    if not entry.is_directory or name.endswith((*_ASIDE, UNFINISHED)):
        return False
    return _PARTITION.fullmatch(name) is not None or _core.is_partition(name, top.below(name).names())


_OF_BROKERS = {"meta.properties", ".kafka_cleanshutdown"}
_ASIDE = ("-delete", "-stray")
"""The ends of names of logs that a broker does not serve. A backup moves there what its cluster has not."""
_PARTITION = re.compile(r".+-\d+", re.DOTALL)
"""The directory of a partition, even if it is empty."""
_LONGEST_PATH = 4096
_SHA256 = re.compile("[0-9a-f]{64}")


def _check(document: Any) -> None:
    """Raises ValueError if a field is not of its type, or a file would be outside the output."""
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    types = {
        "magicbyte": str,
        "command": list,
        "made_ms": int,
        "balanced": bool,
        "problems": int,
        "written": list,
        "inputs": dict,
        "outputs": dict,
    }
    for name, expected in types.items():
        if not isinstance(document.get(name), expected):
            raise ValueError(f"{name} is missing, or has another type")
    if not all(isinstance(word, str) for word in document["command"]):
        raise ValueError("command has a word that is no text")
    for number, one in enumerate(document["written"]):
        _check_sums(f"written[{number}]", one)
    for field in ("inputs", "outputs"):
        for name, file in document[field].items():
            _check_file(f"{field}[{name!r}]", file, may_be_unknown=field == "inputs")
    for name in document["outputs"]:
        if len(name) > _LONGEST_PATH:
            raise ValueError(f"outputs has a path of {len(name):,} characters, more than {_LONGEST_PATH:,}")
        if name == CERTIFICATE or not set(name.split("/")).isdisjoint({"", ".", ".."}) or "\\" in name:
            raise ValueError(f"outputs has {name!r}, which is no path in an output")


def _check_sums(place: str, sums: Any) -> None:
    names = set(CertifiedPartition.__annotations__)
    if not isinstance(sums, dict) or sums.keys() != names or not isinstance(sums["topic"], str):
        raise ValueError(f"{place} does not have the fields {', '.join(sorted(names))}")
    if any(type(sums[name]) is not int for name in names - {"topic"}):
        raise ValueError(f"{place} has a sum that is no number")


def _check_file(place: str, file: Any, *, may_be_unknown: bool) -> None:
    size = file.get("size") if isinstance(file, dict) else None
    if type(size) is not int or not 0 <= size < 1 << 63:
        raise ValueError(f"{place} has no size")
    digest = file.get("sha256")
    if not (digest is None and may_be_unknown) and not (
        isinstance(digest, str) and _SHA256.fullmatch(digest)
    ):
        raise ValueError(f"{place} has no SHA-256")
