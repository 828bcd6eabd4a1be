"""Directories changed at random, through every command. test_hostile_directories.py runs this program in its
own process: it may hang, and it must not read what permissions forbid.

usage: hostile_directories.py SAMPLES PARTITIONS SCRATCH FIRST_SEED LAST_SEED
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import re
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from magicbyte import Error, PartitionLog, _core
from magicbyte.cli import main

SECONDS = 60
"""The time limit of a command."""
LARGEST = 200_000
SEGMENT = re.compile(rb"\d{20}\.log")
SIDECAR = re.compile(
    rb"\d{20}\.(index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata"
)
TEXT = (b"leader-epoch-checkpoint", b"partition.metadata")
Name = bytes


class Case:
    """A directory tree, and what was done to it."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = os.fsencode(root)
        self.chance = chance
        self.done: list[str] = []

    def files(self) -> list[Name]:
        found = [os.path.join(top, name) for top, _, names in os.walk(self.root) for name in names]
        return sorted(path for path in found if is_file(path))

    def directories(self) -> list[Name]:
        return sorted(top for top, _, _ in os.walk(self.root) if top != self.root)

    def pick(self, paths: list[Name]) -> Name | None:
        return self.chance.choice(paths) if paths else None

    def change(self) -> None:
        """Makes one change to one name."""
        action = self.chance.choice(ACTIONS)
        paths = self.directories() if action in OF_DIRECTORIES else self.files()
        if action in OF_SIDECARS:
            paths = [path for path in paths if SIDECAR.fullmatch(os.path.basename(path))]
        path = self.pick(paths)
        if path is not None:
            self.done.append(f"{action.__name__} {path!r}")
            with contextlib.suppress(PermissionError):  # forbidden by an earlier change
                action(self, path)


Action = Callable[[Case, Name], None]


def rename(case: Case, path: Name) -> None:
    names = [
        b"%020d.log" % case.chance.choice([0, 1, 7, 100, 2**40, 2**63 - 1]), b"99999999999999999999.log",
        b"1.log", b"00000000000000000000.LOG", b"00000000000000000005-0000000001.checkpoint",
        os.path.basename(path) + case.chance.choice([b".deleted", b".swap", b".cleaned", b".tmp", b"~"]),
        b"%020d.index" % 3, b"not-\xff\xfe-utf8", b"with\nline\x1b[2J", *TEXT,
    ]  # fmt: skip
    target = os.path.join(os.path.dirname(path), case.chance.choice(names))
    if not os.path.lexists(target):
        os.rename(path, target)


def rename_directory(case: Case, path: Name) -> None:
    names = [b"orders-0", b"t-1", b"plain", b".hidden-2", b"t-0.%s-delete" % (b"a" * 32), b"x\xff-0", b"-1"]
    target = os.path.join(os.path.dirname(path), case.chance.choice(names))
    if not os.path.lexists(target):
        os.rename(path, target)


def remove(_: Case, path: Name) -> None:
    os.unlink(path)


def to_directory(case: Case, path: Name) -> None:
    os.unlink(path)
    os.mkdir(path)
    if case.chance.random() < 0.3:
        Path(os.fsdecode(os.path.join(path, b"%020d.log" % 0))).touch()


def to_fifo(_: Case, path: Name) -> None:
    os.unlink(path)
    os.mkfifo(path)


def to_socket(_: Case, path: Name) -> None:
    os.unlink(path)
    # The path of a socket must be short.
    here = os.getcwd()
    os.chdir(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.basename(path))
    os.chdir(here)


def to_link(case: Case, path: Name) -> None:
    targets = [
        b"/nowhere",
        os.path.basename(path),
        b".",
        b"..",
        b"/dev/null",
        b"/dev/zero",
        b"/proc/self/mem",
    ]
    targets += [path for path in case.files() if path.endswith(b".log")][:3]
    target = case.chance.choice(targets)
    os.unlink(path)
    os.symlink(target, path)


def link_beside(case: Case, path: Name) -> None:
    name = case.chance.choice([b"lost-0", b"orders-7", b"disk2", b"foo", b"%020d.log" % 9, *TEXT])
    target = case.chance.choice([b"/nowhere", name, b"/dev/null", b"..", path])
    beside = os.path.join(case.chance.choice([path, os.path.dirname(path)]), name)
    if not os.path.lexists(beside):
        os.symlink(target, beside)


def forbid(case: Case, path: Name) -> None:
    os.chmod(path, case.chance.choice([0, 0o200, 0o444]))


def forbid_directory(case: Case, path: Name) -> None:
    os.chmod(path, case.chance.choice([0, 0o444, 0o111, 0o600]))


def cut(case: Case, path: Name) -> None:
    size = os.path.getsize(path)
    os.truncate(path, case.chance.choice([0, size // 2, max(0, size - 1), size + 100]))


def scribble(case: Case, path: Name) -> None:
    data = case.chance.choice(
        [b"", b"0\n", b"0\n1\n", b"\xff" * 40, b"0\n1\n0 0\n\n", case.chance.randbytes(99)]
    )
    Path(os.fsdecode(path)).write_bytes(data)


def grow(_: Case, path: Name) -> None:
    os.truncate(path, (64 << 20) + 8 * 34)


def flip(case: Case, path: Name) -> None:
    data = bytearray(Path(os.fsdecode(path)).read_bytes())
    if data:
        data[case.chance.randrange(len(data))] ^= 1 << case.chance.randrange(8)
        Path(os.fsdecode(path)).write_bytes(data)


def put_inside(case: Case, path: Name) -> None:
    make = case.chance.choice([os.mkdir, os.mkfifo])
    name = case.chance.choice([b"%020d.log" % 1, b"%020d.index" % 0, b"%020d.snapshot" % 5, b"foo", b"t-5"])
    if not os.path.lexists(os.path.join(path, name)):
        make(os.path.join(path, name))


ACTIONS: list[Action] = [
    rename, remove, to_directory, to_fifo, to_socket, to_link, forbid, cut, flip, scribble, scribble, grow,
    rename_directory, forbid_directory, forbid_directory, link_beside, link_beside, put_inside,
]  # fmt: skip
OF_DIRECTORIES = (rename_directory, forbid_directory, link_beside, put_inside)
OF_SIDECARS = (scribble, grow)


class Truth:
    """What is wrong with a tree, derived from its names and from the operating system's answers."""

    def __init__(self, root: bytes) -> None:
        self.partitions: list[bytes] = []
        self.lost: list[bytes] = []
        """Parts of logs that cannot be read."""
        self.bad_sidecars: list[bytes] = []
        self._seen: set[bytes] = set()
        self._walk(root)

    def _walk(self, directory: bytes) -> None:
        real = os.path.realpath(directory)
        if real in self._seen:
            return
        self._seen.add(real)
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            self.lost.append(directory)
            return
        is_partition = any(SEGMENT.fullmatch(entry.name) for entry in entries)
        if is_partition:
            try:
                directory.decode()
                self.partitions.append(directory)
            except UnicodeDecodeError:
                self.lost.append(directory)
        for entry in entries:
            name, path = entry.name, entry.path
            if SEGMENT.fullmatch(name) and int(name[:20]) < 1 << 63:
                if not readable(path):
                    self.lost.append(path)
            elif is_partition:
                bad = not (readable if SIDECAR.fullmatch(name) else examined)(path)
                self.bad_sidecars += [path] if bad else []
            elif entry.is_symlink() and not examined(path):
                self.lost.append(path)
            if is_directory(entry):
                self._walk(path)


def examined(path: bytes) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True


def is_directory(entry: os.DirEntry[bytes]) -> bool:
    with contextlib.suppress(OSError):
        return entry.is_dir()
    return False


def is_file(path: bytes) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False


def is_empty(path: bytes) -> bool:
    """Whether it is an empty file, in which nothing can be lost."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.stat(path).st_mode) and os.path.getsize(path) == 0
    return False


def readable(path: bytes) -> bool:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def run(*arguments: str) -> tuple[int, str]:
    """A command's exit code and all its output."""
    printed = io.StringIO()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(list(arguments))
    faulthandler.cancel_dump_traceback_later()
    assert "Traceback" not in printed.getvalue(), f"{arguments}: {printed.getvalue()}"
    return code, printed.getvalue()


def shown(name: bytes) -> str:
    """A name as listings show it."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        escapes = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
        return "".join(
            escapes.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}") for byte in name
        )


def check_listing(partition: bytes) -> None:
    """Every name is in exactly one list."""
    listing = json.loads(_core.list_partition(os.fsdecode(partition)))
    names = sorted(one["file"] for kind in ("segments", "sidecars", "ignored") for one in listing[kind])
    assert names == sorted(map(shown, os.listdir(partition))), partition


def check_sums(found: Any) -> None:
    assert found["balanced"], "the sum does not add up"
    for partition in found["partitions"]:
        for one in partition["segments"]:
            assert one["good_bytes"] + one["quarantined_bytes"] + one["tail_bytes"] == one["size"], one
            assert one["size"] == os.stat(os.path.join(partition["path"], one["file"])).st_size, one
    assert found["total"]["problems"] == len(found["problems"]), "a problem without a row"


def offsets_of(log: PartitionLog) -> Iterator[int]:
    for record in log.records():
        yield record.offset


def check_log(partition: bytes, truth: Truth) -> None:
    """A strict reader sees what a permissive one sees, up to the first loss; and it sees every loss."""
    path = os.fsdecode(partition)
    every = list(offsets_of(PartitionLog(path, mode="PERMISSIVE")))
    seen: list[int] = []
    try:
        for offset in offsets_of(PartitionLog(path)):
            seen.append(offset)
    except Error:
        assert every[: len(seen)] == seen, "a strict reader differs"
        return
    assert every == seen, "a strict reader differs"
    lost = [one for one in truth.lost if os.path.dirname(one) == partition]
    lost = [one for one in lost if SEGMENT.fullmatch(os.path.basename(one)) and not is_empty(one)]
    assert not lost, f"a strict reader misses {lost}"


def check(case: Case, out: Path) -> None:
    root = os.fsdecode(case.root)
    truth = Truth(case.root)
    for partition in truth.partitions:
        with contextlib.suppress(PermissionError):
            os.listdir(partition)
            check_listing(partition)
            check_log(partition, truth)

    code, printed = run("verify", "--json", root)
    if not truth.partitions and not truth.lost:
        assert code == 2, printed
        return
    assert code in (0, 1), printed
    found = json.loads(printed)
    check_sums(found)
    assert code == (1 if found["total"]["problems"] else 0)
    wrong = truth.lost + truth.bad_sidecars
    assert code == 1 or not wrong, f"no problem is reported in spite of {wrong}"

    expected = (0, 1) if not truth.lost else (1,)
    for command in (["explain"], ["stats"], ["dump"], ["records"], ["dump", "--bytes"]):
        code, printed = run(*command, root)
        assert code in expected, f"{command}: {code}: {printed[-2000:]}"
    twice = False
    for number, command in enumerate((["ingest"], ["convert"], ["compact", "--all-topics"])):
        target = out / str(number)
        code, printed = run(*command, "--engine", "local", root, str(target))
        twice = re.search(r"there are \d+ copies of", printed) is not None
        assert (code == 2 and twice) or code in expected, f"{command}: {code}: {printed[-2000:]}"
        if code != 2 and command != ["ingest"] and any(one.is_dir() for one in target.iterdir()):
            code, printed = run("verify", str(target))
            assert code == 0 or "missing_segment" in printed, f"what {command} wrote: {printed[-2000:]}"
    code, printed = run("rescue", root)
    assert (code == 2 and twice) or code in expected, f"rescue: {code}: {printed[-2000:]}"


def copy(sources: list[Path], root: Path, chance: random.Random) -> None:
    for source in chance.sample(sources, chance.choice([1, 1, 2, 3])):
        below = root / chance.choice(["", "", "disk1", "a/b"])
        shutil.copytree(source, below / source.name, ignore=shutil.ignore_patterns("*.json*", "rebuilt"))
    for top, directories, files in os.walk(root):
        for name in directories:
            os.chmod(os.path.join(top, name), 0o755)
        for name in files:
            os.chmod(os.path.join(top, name), 0o644)


def remove_tree(root: Path) -> None:
    """Removes a tree, whatever its permissions."""
    for top, directories, _ in os.walk(os.fsencode(root)):
        for name in directories:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755)
    shutil.rmtree(os.fsencode(root), ignore_errors=True)


def play(samples: Path, partitions: Path, scratch: Path, seeds: range) -> None:
    every = [path for place in (samples, partitions) for path in sorted(place.iterdir()) if path.is_dir()]
    small = [one for one in every if sum(path.stat().st_size for path in one.glob("*.log")) < LARGEST]
    for seed in seeds:
        chance = random.Random(seed)
        # A link may point to the parent directory.
        root, out = scratch / f"logs-{seed}" / "source", scratch / f"out-{seed}"
        root.mkdir(parents=True)
        case = Case(root, chance)
        try:
            copy(small, root, chance)
            for _ in range(chance.choice([0, 1, 1, 2, 3, 5, 8])):
                case.change()
            check(case, out)
        except BaseException:
            print(f"seed {seed}:", *case.done, sep="\n  ", file=sys.stderr)
            raise
        remove_tree(root.parent)
        shutil.rmtree(out, ignore_errors=True)


if __name__ == "__main__":
    faulthandler.enable()
    play(*map(Path, sys.argv[1:4]), range(int(sys.argv[4]), int(sys.argv[5])))
