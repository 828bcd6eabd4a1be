"""What stands in the way of a release, and the files that say its version and its links."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("Cargo.toml", "pyproject.toml", "CITATION.cff", "README.md", "SECURITY.md", "CHANGELOG.md")
LOCK_FILES = ("Cargo.lock", "fuzz/Cargo.lock", "benches/peers/rust/Cargo.lock")
SCRIPTS = ("metadata.py", "release.py")
REPOSITORY = "https://github.com/example/magicbyte"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The manifests and the scripts alone, whatever has been set in them here."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    for path in ROOT.glob("crates/*/Cargo.toml"):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    for name in LOCK_FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "scripts").mkdir()
    for name in SCRIPTS:
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    return tmp_path


def run(tree: Path, script: str, *arguments: str) -> tuple[int, str]:
    """Runs a script of the tree; returns its exit code and all that it printed."""
    command = [sys.executable, str(tree / "scripts" / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def release(tree: Path, version: str, date: str = "2026-12-01") -> None:
    """Makes everything ready for the release of this version."""
    code, output = run(tree, "metadata.py", "--version", version, "--repository", REPOSITORY)
    assert (code, output) == (0, "")
    path = tree / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## Unreleased", f"## {version} - {date}", 1))


def test_all_files_agree() -> None:
    """Also those of the links, in whatever state the owner left them."""
    assert run(ROOT, "metadata.py", "--check") == (0, "")


def test_the_version_stands_in_every_file(tree: Path) -> None:
    run(tree, "metadata.py", "--version", "7.8.9")
    cargo = tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]
    own = [entry for name, entry in cargo["dependencies"].items() if name.startswith("magicbyte")]
    assert cargo["package"]["version"] == "7.8.9"
    assert {entry["version"] for entry in own if "version" in entry} == {"7.8.9"}
    assert "\nversion: 7.8.9\n" in (tree / "CITATION.cff").read_text()
    for name in LOCK_FILES:
        locked = tomllib.loads((tree / name).read_text())["package"]
        own = {entry["version"] for entry in locked if entry["name"].startswith("magicbyte")}
        assert own - {"0.0.0"} == {"7.8.9"}, name
        foreign = [entry for entry in locked if "source" in entry]
        assert foreign == [
            entry for entry in tomllib.loads((ROOT / name).read_text())["package"] if "source" in entry
        ]
    assert run(tree, "metadata.py", "--check") == (0, "")


def test_the_links_stand_in_every_file(tree: Path) -> None:
    code, output = run(tree, "metadata.py", "--repository", f"{REPOSITORY}.git")
    assert (code, output) == (0, "")
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Changelog"] == f"{REPOSITORY}/blob/main/CHANGELOG.md"
    for path in tree.glob("crates/*/Cargo.toml"):
        package = tomllib.loads(path.read_text())["package"]
        assert ("repository" in package) == ("publish" not in package), path
    assert f"<{REPOSITORY}/security/advisories/new>" in (tree / "SECURITY.md").read_text()
    assert f'repository-code: "{REPOSITORY}"' in (tree / "CITATION.cff").read_text()
    # An index of packages shows this page.
    links = re.findall(r"\]\(([^)]*)\)", (tree / "README.md").read_text())
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    for link in links:
        # A picture is no page.
        kind = "raw" if link.endswith(".svg") else "blob"
        path, _, _ = link.removeprefix(f"{REPOSITORY}/{kind}/main/").partition("#")
        assert (ROOT / path).exists(), link


def test_a_repository_can_move(tree: Path) -> None:
    run(tree, "metadata.py", "--repository", REPOSITORY)
    moved = REPOSITORY.replace("example", "elsewhere")
    run(tree, "metadata.py", "--repository", moved)
    for name in FILES[:5]:
        text = (tree / name).read_text()
        assert moved in text, name
        assert REPOSITORY not in text, name
    assert run(tree, "metadata.py", "--check") == (0, "")


@pytest.mark.parametrize("name", FILES[1:5])
def test_a_file_that_disagrees_is_named(tree: Path, name: str) -> None:
    run(tree, "metadata.py", "--repository", REPOSITORY)
    path = tree / name
    path.write_text(path.read_text().replace("example/magicbyte", "other/magicbyte"))
    code, output = run(tree, "metadata.py", "--check")
    assert (code, output) == (1, f"{name} does not follow from Cargo.toml: run scripts/metadata.py\n")


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--version", "0.2", "three numbers"),
        ("--version", "v0.2.0", "three numbers"),
        ("--repository", "magicbyte", "https://github.com/OWNER/NAME"),
        ("--repository", "https://example.com/magicbyte", "https://github.com/OWNER/NAME"),
        ("--repository", f'{REPOSITORY}"\nx = "', "https://github.com/OWNER/NAME"),
    ],
)
def test_values_that_are_none(tree: Path, option: str, value: str, says: str) -> None:
    before = (tree / "Cargo.toml").read_text()
    code, output = run(tree, "metadata.py", option, value)
    assert code == 2
    assert says in output
    assert (tree / "Cargo.toml").read_text() == before


def test_pages_name_the_lowest_versions() -> None:
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for page in ("README.md", "docs/install.md", "docs/support.md"):
        named = re.findall(r"Rust(?: \|)? (\d+\.\d+)", (ROOT / page).read_text())
        assert {*named} == {rust}, page
    pythons = [name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert project["requires-python"] == f">={pythons[0]}"
    assert f"{pythons[0]} to {pythons[-1]}" in (ROOT / "docs/support.md").read_text()
    matrix = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text())[1]
    assert re.findall(r"[\d.]+", matrix) == pythons


def test_a_release_that_may_be(tree: Path) -> None:
    release(tree, "3.0.0")
    assert run(tree, "release.py", "v3.0.0") == (0, "v3.0.0 may be released\n")


def test_changes_since_have_an_empty_section(tree: Path) -> None:
    release(tree, "3.0.0")
    path = tree / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## 3.0.0", "## Unreleased\n\n## 3.0.0"))
    assert run(tree, "release.py", "v3.0.0")[0] == 0
    path.write_text(path.read_text().replace("## Unreleased\n", "## Unreleased\n- A change.\n"))
    code, output = run(tree, "release.py", "v3.0.0")
    assert code == 1
    assert "unreleased changes" in output


@pytest.mark.parametrize("tag", ["3.0.0", "v3.0.1", "v3.0", "v3.0.0-rc1", "", "main"])
def test_a_tag_of_another_version_stops_the_release(tree: Path, tag: str) -> None:
    release(tree, "3.0.0")
    code, output = run(tree, "release.py", tag)
    assert (code, output) == (
        1,
        f"the tag {tag} is not the version of Cargo.toml: expected v3.0.0\n",
    )


def test_links_that_are_not_set_stop_the_release(tree: Path) -> None:
    release(tree, "3.0.0")
    for path in (tree / "Cargo.toml", *tree.glob("crates/*/Cargo.toml")):
        path.write_text(re.sub(r"^repository.*\n", "", path.read_text(), flags=re.M))
    code, output = run(tree, "release.py", "v3.0.0")
    assert code == 1
    assert "the links are not set: run scripts/metadata.py --repository" in output
    run(tree, "metadata.py")
    assert "https://github.com/example" not in "".join((tree / name).read_text() for name in FILES)


@pytest.mark.parametrize(
    "heading", ["Unreleased", "3.0.0", "3.0.0 - soon", "3.0.0 - 2026-02-30", "2.0.0 - 2026-01-01"]
)
def test_a_changelog_without_the_date_stops_the_release(tree: Path, heading: str) -> None:
    release(tree, "3.0.0")
    path = tree / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## 3.0.0 - 2026-12-01", f"## {heading}"))
    code, output = run(tree, "release.py", "v3.0.0")
    assert code == 1
    assert "'## 3.0.0 - YYYY-MM-DD'" in output


def test_a_file_that_disagrees_stops_the_release(tree: Path) -> None:
    release(tree, "3.0.0")
    path = tree / "CITATION.cff"
    path.write_text(path.read_text().replace("3.0.0", "2.0.0"))
    assert run(tree, "release.py", "v3.0.0")[0] == 1


# --- The commit of a tag --------------------------------------------------------------------------


def git(tree: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tagged(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the tag v3.0.0 on main; its `gh` prints the file `runs` and notes its arguments."""
    release(tree, "3.0.0")
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message=ready")
    git(tree, "tag", "--annotate", "v3.0.0", "--message=v3.0.0")
    git(tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    answer(tree, status="completed", conclusion="success")
    (tree / "bin").mkdir()
    (tree / "bin/gh").write_text('#!/bin/sh\necho "$@" > asked\ncat runs\n')
    (tree / "bin/gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tree / "bin"), prepend=":")
    return tree


def answer(tree: Path, **run: str) -> None:
    (tree / "runs").write_text(json.dumps([{**run, "url": "https://github.com/run/1"}] if run else []))


def test_a_tag_on_main_that_passed(tagged: Path) -> None:
    assert run(tagged, "release.py", "v3.0.0", "--tagged") == (0, "v3.0.0 may be released\n")
    asked = (tagged / "asked").read_text()
    assert f"--commit {git(tagged, 'rev-parse', 'HEAD')} " in asked
    assert "--workflow ci.yml --branch main --event push" in asked


def test_main_may_have_gone_on(tagged: Path) -> None:
    git(tagged, "commit", "--quiet", "--allow-empty", "--message=later")
    git(tagged, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert run(tagged, "release.py", "v3.0.0", "--tagged")[0] == 0
    assert f"--commit {git(tagged, 'rev-parse', 'HEAD~')} " in (tagged / "asked").read_text()


def test_a_commit_outside_of_main_stops_the_release(tagged: Path) -> None:
    git(tagged, "switch", "--quiet", "--create", "elsewhere")
    git(tagged, "commit", "--quiet", "--allow-empty", "--message=not reviewed")
    git(tagged, "tag", "--force", "v3.0.0")
    code, output = run(tagged, "release.py", "v3.0.0", "--tagged")
    assert code == 1
    assert output.endswith("of v3.0.0 is not on main, as far as this clone knows\n")
    assert not (tagged / "asked").exists()


def test_a_clone_without_main_stops_the_release(tagged: Path) -> None:
    git(tagged, "update-ref", "-d", "refs/remotes/origin/main")
    code, output = run(tagged, "release.py", "v3.0.0", "--tagged")
    assert (code, "is not on main" in output) == (1, True)


def test_a_tag_that_does_not_exist(tagged: Path) -> None:
    """It is no problem before it is made; a branch of its name is no tag."""
    git(tagged, "tag", "--delete", "v3.0.0")
    git(tagged, "branch", "v3.0.0")
    assert run(tagged, "release.py", "v3.0.0")[0] == 0
    assert run(tagged, "release.py", "v3.0.0", "--tagged") == (1, "there is no tag v3.0.0\n")


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ({}, "CI has not run for"),
        ({"status": "completed", "conclusion": "failure"}, ": failure, see https://github.com/run/1"),
        ({"status": "completed", "conclusion": "cancelled"}, ": cancelled, see"),
        ({"status": "completed", "conclusion": "skipped"}, ": skipped, see"),
        ({"status": "in_progress", "conclusion": ""}, ": in_progress, see"),
        ({"status": "queued", "conclusion": ""}, ": queued, see"),
    ],
)
def test_ci_that_has_not_succeeded_stops_the_release(
    tagged: Path, outcome: dict[str, str], says: str
) -> None:
    answer(tagged, **outcome)
    code, output = run(tagged, "release.py", "v3.0.0", "--tagged")
    assert code == 1
    assert says in output


def test_a_gh_that_fails_stops_the_release(tagged: Path) -> None:
    (tagged / "bin/gh").write_text("#!/bin/sh\necho 'set GH_TOKEN' >&2; exit 4\n")
    code, output = run(tagged, "release.py", "v3.0.0", "--tagged")
    assert code == 1
    assert output.endswith("set GH_TOKEN\n")


@pytest.mark.parametrize("arguments", [(), ("v3.0.0", "v3.0.1"), ("v3.0.0", "--forced")])
def test_arguments_that_are_none(tree: Path, arguments: tuple[str, ...]) -> None:
    code, output = run(tree, "release.py", *arguments)
    assert (code, "scripts/release.py TAG [--tagged]" in output) == (2, True)
