"""What is checked of wheels and source distributions, and how a wheel is made the same on every machine."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import build_wheel  # noqa: E402
import check_dist  # noqa: E402
import portable_wheel  # noqa: E402
import reproducible  # noqa: E402

LIBRARY = "magicbyte/_core.abi3.so"
SBOM = "magicbyte-0.2.0.dist-info/sboms/magicbyte-python.cyclonedx.json"
RECORD = "magicbyte-0.2.0.dist-info/RECORD"


def digest(content: bytes) -> str:
    """As RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def a_wheel(directory: Path, root: str, number: int, library: bytes = b"\x7fELF") -> Path:
    """A wheel as maturin writes it when it builds in `root`; `number` differs with each build."""
    sbom = {
        "serialNumber": f"urn:uuid:{number}",
        "metadata": {
            "timestamp": f"2026-01-01T00:00:{number:02}Z",
            "component": {"name": "magicbyte-python"},
        },
        "components": [{"bom-ref": f"path+file://{root}#magicbyte@0.2.0"}, {"bom-ref": "registry+x#a@1"}],
    }
    members = {LIBRARY: library, SBOM: json.dumps(sbom).encode()}
    lines = [f"{name},{digest(content)},{len(content)}\n" for name, content in members.items()]
    members[RECORD] = "".join([*lines, f"{RECORD},,\n"]).encode()
    wheel = directory / "magicbyte-0.2.0-cp311-abi3-win_amd64.whl"
    directory.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return wheel


def test_wheels_of_two_directories_are_the_same(tmp_path: Path) -> None:
    roots = ("/home/one/magicbyte", "/somewhere/else")
    wheels = [a_wheel(tmp_path / str(n), root, n) for n, root in enumerate(roots)]
    assert reproducible.differences(*wheels) == [SBOM, RECORD]
    for wheel, root in zip(wheels, roots, strict=True):
        portable_wheel.make_portable(wheel, Path(root))
    assert reproducible.differences(*wheels) == []
    with zipfile.ZipFile(wheels[0]) as archive:
        assert archive.testzip() is None
        sbom = json.loads(archive.read(SBOM))
        for name, hashed, size in csv.reader(io.StringIO(archive.read(RECORD).decode())):
            content = archive.read(name)
            assert name == RECORD or (hashed, size) == (digest(content), str(len(content)))
        assert [info.date_time for info in archive.infolist()] == [(2026, 1, 1, 0, 0, 0)] * 3
    assert sbom["components"][0]["bom-ref"] == "path+file:///magicbyte#magicbyte@0.2.0"
    assert sbom["metadata"] == {"component": {"name": "magicbyte-python"}}


def test_what_differs_is_named(tmp_path: Path) -> None:
    first = a_wheel(tmp_path / "one", "/r", 1, b"one")
    second = a_wheel(tmp_path / "two", "/r", 1, b"two")
    assert reproducible.differences(first, second) == [LIBRARY, RECORD]
    with zipfile.ZipFile(second, "a") as archive:
        archive.writestr("more", b"")
    assert reproducible.differences(first, second)[0] == "more"


@pytest.mark.parametrize(
    "path",
    [
        "/home/ann/magicbyte/src/lib.rs",
        "/home/runner/.cargo/registry/src/index-0123/serde-1.0/src/lib.rs",
        "/root/src/lib.rs",
        "/Users/runner/work/magicbyte/lib.rs",
        "/opt/cargo/.cargo/registry",
        "/usr/local/rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/fmt.rs",
        r"D:\a\magicbyte\magicbyte\src\lib.rs",
        r"C:\Users\ann\.rustup\x",
        "/__w/magicbyte/src",
        str(ROOT / "src" / "lib.rs"),
    ],
)
def test_a_path_of_the_builder_is_found(tmp_path: Path, path: str) -> None:
    wheel = a_wheel(tmp_path, "/magicbyte", 0, b"\0\1" + path.encode() + b"\0")
    (line,) = check_dist.paths(check_dist.zip_members(wheel), check_dist.ELSEWHERE)
    assert line.startswith(f"{LIBRARY} names 1 paths of the builder: ")


@pytest.mark.parametrize(
    "text",
    [
        "/cargo/serde-1.0/src/lib.rs",
        "/rustc/0123/library/core/src/fmt.rs",
        "crates/magicbyte/src/lib.rs",
        "/tmp",
    ],
)
def test_other_paths_are_none(tmp_path: Path, text: str) -> None:
    wheel = a_wheel(tmp_path, "/magicbyte", 0, text.encode())
    assert [*check_dist.paths(check_dist.zip_members(wheel), check_dist.ELSEWHERE)] == []


def test_sources_may_name_directories_of_others(tmp_path: Path) -> None:
    for content, found in ((b"cp /home/ann/x ~/.cargo/y", 0), (f"cp {ROOT}/x y".encode(), 1)):
        source = tmp_path / "magicbyte-0.2.0.tar.gz"
        with tarfile.open(source, "w:gz") as archive:
            info = tarfile.TarInfo("magicbyte-0.2.0/Makefile")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        assert len([*check_dist.paths(check_dist.tar_members(source), check_dist.HERE)]) == found


def test_a_wheel_for_one_linux_alone_is_none_for_an_index() -> None:
    (line,) = check_dist.platform_problems(Path("magicbyte-0.2.0-cp311-abi3-linux_x86_64.whl"))
    assert "expected manylinux or musllinux" in line
    for platform in ("win_amd64", "macosx_11_0_arm64"):
        assert check_dist.platform_problems(Path(f"magicbyte-0.2.0-cp311-abi3-{platform}.whl")) == []


def test_an_empty_directory_is_no_distribution(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "check_dist.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}: no wheel and no source distribution\n")


@pytest.mark.parametrize("target", ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"])
def test_compilers_name_no_directory_of_this_machine(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    variables = build_wheel.compilers(target)
    rust = variables["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
    # Of two prefixes the compilers take the later one: the target directory is in that of the project.
    assert rust[-2:] == [
        f"--remap-path-prefix={ROOT}=/magicbyte",
        f"--remap-path-prefix={ROOT}/target=/magicbyte/target",
    ]
    c = variables.get("CFLAGS_x86_64_unknown_linux_gnu", "")
    assert (f"-ffile-prefix-map={ROOT}=/magicbyte" in c) == target.endswith("-gnu")


def test_smoke_uses_the_standard_library_alone() -> None:
    imported = re.findall(r"^(?:import|from) ([\w]+)", (ROOT / "scripts/smoke.py").read_text(), re.M)
    assert {*imported} - {"magicbyte"} <= sys.stdlib_module_names


def test_smoke_passes_here() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "smoke.py"), str(ROOT / "samples")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "5 codecs" in done.stdout
