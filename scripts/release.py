"""Checks that a tag may be released, before anything is built or published.

usage: scripts/release.py TAG [--tagged]

With --tagged the tag must exist, on a commit of origin's main for which CI has succeeded. GitHub's `gh` is
asked about that, and needs a token that may read the runs of workflows.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from metadata import ROOT, Metadata, disagreements


def problems(root: Path, tag: str) -> list[str]:
    """What is in the way of this release, a line each."""
    metadata = Metadata.read(root)
    found = disagreements(root)
    if tag != f"v{metadata.version}":
        found.append(f"the tag {tag} is not the version of Cargo.toml: expected v{metadata.version}")
    if not metadata.repository:
        found.append(
            "the links are not set: run scripts/metadata.py --repository https://github.com/OWNER/NAME"
        )
    return found + changelog_problems((root / "CHANGELOG.md").read_text(encoding="utf-8"), metadata.version)


def changelog_problems(text: str, version: str) -> list[str]:
    """Checks that the newest section of the changelog is that of this version, with a date."""
    heading, _, rest = text.partition("\n## ")[2].partition("\n")
    if heading == "Unreleased":
        content, _, rest = rest.partition("\n## ")
        if content.strip():
            return [f"CHANGELOG.md has unreleased changes: expected them under '## {version} - YYYY-MM-DD'"]
        heading = rest.partition("\n")[0]
    dated = re.fullmatch(rf"{re.escape(version)} - (\d{{4}}-\d\d-\d\d)", heading)
    try:
        if dated and date.fromisoformat(dated[1]):
            return []
    except ValueError:
        pass
    return [f"CHANGELOG.md begins with '## {heading}': expected '## {version} - YYYY-MM-DD'"]


def commit_problems(root: Path, tag: str) -> list[str]:
    """Checks that the commit of a tag is on main and has passed CI."""
    done = _run(root, "git", "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}^{{commit}}")
    commit = done.stdout.strip()
    if done.returncode:
        return [f"there is no tag {tag}"]
    if _run(root, "git", "merge-base", "--is-ancestor", commit, "refs/remotes/origin/main").returncode:
        return [f"the commit {commit} of {tag} is not on main, as far as this clone knows"]
    return ci_problems(root, commit)


def ci_problems(root: Path, commit: str) -> list[str]:
    """Checks that the newest run of CI for a commit on main has succeeded."""
    command = ["gh", "run", "list", "--workflow", "ci.yml", "--branch", "main", "--event", "push"]
    done = _run(root, *command, "--commit", commit, "--limit", "1", "--json", "status,conclusion,url")
    if done.returncode:
        return [f"gh does not tell how CI ended for {commit}: {done.stderr.strip()}"]
    runs = json.loads(done.stdout)
    if not runs:
        return [f"CI has not run for {commit} on main"]
    if (outcome := runs[0]["conclusion"] or runs[0]["status"]) != "success":
        return [f"CI has not succeeded for {commit}: {outcome}, see {runs[0]['url']}"]
    return []


def _run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def main() -> int:
    """Prints the problems; returns 1 if there are any."""
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].rstrip())
    parser.add_argument("tag")
    parser.add_argument("--tagged", action="store_true")
    given = parser.parse_args()
    found = problems(ROOT, given.tag) + (commit_problems(ROOT, given.tag) if given.tagged else [])
    print("\n".join(found) or f"{given.tag} may be released", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
