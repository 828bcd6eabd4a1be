"""Writes the version and the links wherever they stand, from the two values in Cargo.toml.

usage: scripts/metadata.py [--version X.Y.Z] [--repository https://github.com/OWNER/NAME] [--check]

`[workspace.package]` of Cargo.toml has both: `version`, and `repository`, which the owner sets. Until then no
file has a link. With --check nothing is written, and files that disagree are an error.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPOSITORY = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
LOCK_FILES = ("Cargo.lock", "fuzz/Cargo.lock", "benches/peers/rust/Cargo.lock")
NOT_SET = "The address for private reports is not set yet, since nothing has been published."


@dataclass(frozen=True)
class Metadata:
    """The values of which the rest follows; `repository` is empty until it is set."""

    version: str
    repository: str = ""

    @classmethod
    def read(cls, root: Path) -> Metadata:
        """The values in Cargo.toml."""
        package = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
        return cls(package["version"], package.get("repository", ""))

    def files(self, root: Path) -> dict[Path, str]:
        """Each file that has one of the values, and its text with them."""
        writers: dict[Path, Callable[[str], str]] = {
            root / "Cargo.toml": self._workspace,
            root / "pyproject.toml": self._project,
            root / "CITATION.cff": self._citation,
            root / "README.md": self.readme,
            root / "SECURITY.md": self._security,
        }
        texts = {path: write(path.read_text(encoding="utf-8")) for path, write in writers.items()}
        for path in sorted(root.glob("crates/*/Cargo.toml")):
            texts[path] = self._crate(path.read_text(encoding="utf-8"))
        for path in (root / name for name in LOCK_FILES):
            texts[path] = self._lock_file(path.read_text(encoding="utf-8"))
        return texts

    def _workspace(self, text: str) -> str:
        text = re.sub(r'^version = ".*"$', f'version = "{self.version}"', text, count=1, flags=re.M)
        text = re.sub(r'(path = "[^"]*", version = )"[^"]*"', rf'\1"{self.version}"', text)
        text = re.sub(r'^repository = ".*"\n', "", text, flags=re.M)
        line = f'repository = "{self.repository}"\n' if self.repository else ""
        return self._crate(re.sub(r'^(license = ".*"\n)', rf"\1{line}", text, count=1, flags=re.M))

    def _crate(self, text: str) -> str:
        """Crates that are published have categories, and so links."""
        text = text.replace("repository.workspace = true\n", "")
        line = "repository.workspace = true\n" if self.repository else ""
        return text.replace("categories.workspace = true\n", f"{line}categories.workspace = true\n")

    def _lock_file(self, text: str) -> str:
        """Our own crates are the ones without a source; the fuzz targets have no version."""
        return re.sub(r'(name = "magicbyte(?!-fuzz)[\w-]*"\nversion = )".*"', rf'\1"{self.version}"', text)

    def _project(self, text: str) -> str:
        links = {
            "Repository": self.repository,
            "Documentation": f"{self.repository}/blob/main/docs/guide.md",
            "Changelog": f"{self.repository}/blob/main/CHANGELOG.md",
            "Issues": f"{self.repository}/issues",
        }
        table = "[project.urls]\n" + "".join(f'{name} = "{link}"\n' for name, link in links.items()) + "\n"
        text = re.sub(r"^\[project\.urls\]\n(\w+ = .*\n)*\n", "", text, flags=re.M)
        return text.replace("[project.scripts]\n", (table if self.repository else "") + "[project.scripts]\n")

    def _citation(self, text: str) -> str:
        text = re.sub(r"^version: .*$", f"version: {self.version}", text, flags=re.M)
        text = re.sub(r"^repository-code: .*\n", "", text, flags=re.M)
        return text + (f'repository-code: "{self.repository}"\n' if self.repository else "")

    def readme(self, text: str) -> str:
        """An index shows the page, where relative links would lead nowhere."""
        text = re.sub(rf"\]\({REPOSITORY.pattern}/(?:blob|raw)/main/", "](", text)
        if not self.repository:
            return text
        pictures = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{self.repository}/raw/main/", text)
        return re.sub(r"\]\((?!https?:|#)", f"]({self.repository}/blob/main/", pictures)

    def _security(self, text: str) -> str:
        sentence = NOT_SET
        if self.repository:
            sentence = f"Report a vulnerability privately at <{self.repository}/security/advisories/new>."
        return re.sub(r"(?<=\n## Reporting\n\n).*(?=\n)", sentence, text)


def disagreements(root: Path) -> list[str]:
    """A line for each file that says another version or repository than Cargo.toml."""
    found = Metadata.read(root)
    return [
        f"{path.relative_to(root)} does not follow from Cargo.toml: run scripts/metadata.py"
        for path, text in found.files(root).items()
        if path.read_text(encoding="utf-8") != text
    ]


def repository(text: str) -> str:
    """The address of a repository, without the end that some write."""
    address = text.removesuffix("/").removesuffix(".git")
    if not REPOSITORY.fullmatch(address):
        raise argparse.ArgumentTypeError(f"{text!r}: expected https://github.com/OWNER/NAME")
    return address


def version(text: str) -> str:
    """A version, as a release has it."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected three numbers, such as 1.2.3")
    return text


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Writes or checks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--version", type=version)
    parser.add_argument("--repository", type=repository)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.check:
        problems = disagreements(root)
        print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
        return 1 if problems else 0
    current = Metadata.read(root)
    changed = Metadata(options.version or current.version, options.repository or current.repository)
    for path, text in changed.files(root).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
