"""The temporary directory of the Java programs, which is removed at the end.

Their codecs unpack native libraries there, which remain if the process is killed.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile

__all__ = ["IN_TEMPORARY"]

_DIRECTORY = tempfile.mkdtemp(prefix="magicbyte-java-")
atexit.register(shutil.rmtree, _DIRECTORY, ignore_errors=True)

IN_TEMPORARY = f"-Djava.io.tmpdir={_DIRECTORY}"
"""The option of `java` for it."""
