"""The versions of Kafka that the tests use, from `versions.mk` or from the environment of `make`."""

from __future__ import annotations

import os
import re
from pathlib import Path

_DECLARED = dict(re.findall(r"^(\w+) := (.+)$", Path(__file__).with_name("versions.mk").read_text(), re.M))
_GIVEN = {name: os.environ.get(name, versions) for name, versions in _DECLARED.items()}

JUDGES = tuple(_GIVEN["JUDGES"].split())
"""The versions whose verdicts are compared with ours, the newest first."""
NEWEST = JUDGES[0]
BUILDS = _GIVEN["BUILDS"]
OLD = _GIVEN["OLD"]
OLDEST = _GIVEN["OLDEST"]
TIERED = "4.3.1"
"""The newest version with a store of remote segments: it is in the tests' classes, which 4.4.0 has not published."""
