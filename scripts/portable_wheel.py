"""Makes the list of crates in a wheel (its SBOM) the same wherever the wheel was built.

maturin writes it with the directory, the time and a random number. All other files stay as they are.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any


def make_portable(wheel: Path, root: Path) -> None:
    """Writes the wheel again, with `root` and what differs between two builds left out of its SBOM."""
    with zipfile.ZipFile(wheel) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    changed = {
        info.filename: portable_sbom(content, root)
        for info, content in members
        if info.filename.endswith(".cyclonedx.json")
    }
    written = wheel.with_suffix(".part")
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, content in members:
            if info.filename.endswith(".dist-info/RECORD"):
                content = record(content.decode(), changed)
            archive.writestr(info, changed.get(info.filename, content), zipfile.ZIP_DEFLATED, 9)
    os.replace(written, wheel)


def portable_sbom(content: bytes, root: Path) -> bytes:
    """The SBOM with `/magicbyte` for the directory, and without a number and a time of its own."""
    sbom: dict[str, Any] = json.loads(content)
    sbom.pop("serialNumber", None)
    sbom["metadata"].pop("timestamp", None)
    text = json.dumps(sbom, indent=2, sort_keys=True)
    return text.replace(root.as_uri(), "file:///magicbyte").encode()


def record(text: str, changed: dict[str, bytes]) -> bytes:
    """The wheel's RECORD with the hashes and sizes of these files."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for name, digest, size in csv.reader(io.StringIO(text)):
        if (content := changed.get(name)) is not None:
            hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            digest, size = f"sha256={hashed}", str(len(content))
        writer.writerow((name, digest, size))
    return out.getvalue().encode()
