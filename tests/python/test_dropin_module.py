"""The module `magicbyte.compat._core`, which has no file: imports in any order, and pickling."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys

import magicbyte
import pytest
from magicbyte.compat import _core


@pytest.mark.parametrize(
    "imports",
    [
        "import magicbyte.compat._core as found",
        "import magicbyte.compat._core; found = magicbyte.compat._core",
        "from magicbyte.compat import _core as found",
        "from magicbyte.compat._core import counts; found = sys.modules['magicbyte.compat._core']",
        "import magicbyte; found = importlib.import_module('magicbyte.compat._core')",
        "import magicbyte._core; import magicbyte.compat; found = magicbyte.compat._core",
        "import magicbyte.compat.kafka_python, magicbyte.compat; found = magicbyte.compat._core",
        "import pickle; pickle.loads(b'cmagicbyte.compat._core\\ncounts\\n.'); "
        "found = sys.modules['magicbyte.compat._core']",
    ],
)
def test_imports_in_any_order(imports: str) -> None:
    program = (
        f"import importlib, sys; {imports}\n"
        "import magicbyte.compat, magicbyte.compat.aiokafka as aiokafka\n"
        "assert found.__name__ == 'magicbyte.compat._core'\n"
        "assert found is sys.modules[found.__name__] is magicbyte.compat._core\n"
        "assert aiokafka.DefaultRecord is found.AiokafkaDefaultRecord\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_spec_is_found() -> None:
    assert importlib.util.find_spec("magicbyte.compat._core") is not None


def test_the_core_has_no_drop_ins() -> None:
    assert not set(_core.__all__) & set(magicbyte._core.__all__)
    assert not [name for name in dir(magicbyte._core) if "kafka" in name.lower() or "compat" in name.lower()]


@pytest.mark.parametrize("name", _core.__all__)
def test_pickled_by_reference(name: str) -> None:
    found = getattr(_core, name)
    assert pickle.loads(pickle.dumps(found)) is found
    assert found.__module__.startswith("magicbyte.compat.")
