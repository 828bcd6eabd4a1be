"""A path that is read: how its files are listed and opened, resolved once.

Jobs that write use `destination.py`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import BufferedReader, RawIOBase
from typing import Any, BinaryIO, NamedTuple

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.storage.backend import ODD_KEY
from magicbyte.storage.paths import AnyPath, absolute, is_url, local_path, mount_point

__all__ = [
    "ClusterUrl",
    "DirectoryEntry",
    "Location",
    "are_fetched",
    "cluster_of",
    "locate",
    "refuse_cluster",
]

_COMPRESSED = (".log.zst", ".log.gz")
_CLUSTER = re.compile(r"(kafkas?)://([^/]*)(.*)", re.IGNORECASE | re.DOTALL)
_PORT = 9092
"""The port of a broker that is named without one."""


class DirectoryEntry(NamedTuple):
    """A name in a directory."""

    name: str
    is_directory: bool
    why: str | None = None
    """The reason if nothing more is known of it."""


class Location(ABC):
    """A file or directory."""

    is_live: bool
    """True if others may write, rename or delete files while they are read."""
    shows_unfinished: bool
    """True if the output of a job appears under its final name before it is complete."""

    def __init__(self, path: str) -> None:
        self.path = path

    @abstractmethod
    def absolute(self) -> Location:
        """The location with an absolute path."""

    @abstractmethod
    def below(self, name: str) -> Location:
        """The location of an entry of this directory."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """The same text for all names of a directory."""

    @abstractmethod
    def check_exists(self) -> None:
        """Raises RefusedError if it is known that nothing is there."""

    @abstractmethod
    def exists(self) -> bool:
        """True if something is there, if only a link that leads nowhere."""

    @abstractmethod
    def is_still_there(self) -> bool:
        """False if it has been deleted since it was listed."""

    @abstractmethod
    def is_directory(self) -> bool:
        """True for a directory, or an archive, which is read as a directory."""

    @abstractmethod
    def entries(self) -> list[DirectoryEntry]:
        """The entries of a directory. Raises OSError if it cannot be listed."""

    def names(self) -> list[str]:
        """The names in a directory. Raises as `entries` does."""
        return [entry.name for entry in self.entries()]

    @abstractmethod
    def why_unread(self, error: OSError) -> str | None:
        """The reason if an error loses only the content of this directory; None if it ends the job."""

    @abstractmethod
    def open(self, block_bytes: int) -> BinaryIO | BufferedReader:
        """Opens a regular file, or the content of a compressed segment, without blocking.

        A store and an archive are read in blocks of this size.
        """


class _LocalPath(Location):
    """A path of the local file system."""

    is_live = True
    shows_unfinished = False

    def absolute(self) -> Location:
        return _LocalPath(os.path.abspath(self.path))

    def below(self, name: str) -> Location:
        return _LocalPath(os.path.join(self.path, name))

    @property
    def identity(self) -> str:
        return os.path.realpath(self.path)

    def check_exists(self) -> None:
        if not self.exists():
            raise RefusedError(f"{self.path} does not exist")

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def is_still_there(self) -> bool:
        return os.path.exists(self.path)

    def is_directory(self) -> bool:
        return os.path.isdir(self.path)

    def entries(self) -> list[DirectoryEntry]:
        with os.scandir(self.path) as scan:
            return [DirectoryEntry(entry.name, *_examine(entry)) for entry in scan]

    def why_unread(self, error: OSError) -> str | None:
        return error.strerror or str(error)

    def open(self, block_bytes: int) -> BinaryIO | BufferedReader:
        if self.path.endswith(_COMPRESSED):
            return BufferedReader(_StoredFile(self.path), block_bytes)
        file = open(self.path, "rb", opener=_without_blocking)  # noqa: SIM115  # the caller closes it
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file


class _ArchivedPath(Location):
    """A path of an archive or inside an archive: the core examines it."""

    is_live = False
    shows_unfinished = False

    def absolute(self) -> Location:
        return self

    def below(self, name: str) -> Location:
        return type(self)(f"{self.path}/{name}")

    @property
    def identity(self) -> str:
        return self.path

    def check_exists(self) -> None:
        pass  # the first access shows

    def exists(self) -> bool:
        directory, name = os.path.split(self.path)
        try:
            return any(name == other for other, _ in _core.list_directory(directory))
        except FileNotFoundError:
            return False

    def is_still_there(self) -> bool:
        return True

    def is_directory(self) -> bool:
        return _core.is_directory(self.path)

    def entries(self) -> list[DirectoryEntry]:
        return [DirectoryEntry(*entry) for entry in _core.list_directory(self.path)]

    def why_unread(self, error: OSError) -> str | None:
        return error.strerror or str(error)

    def open(self, block_bytes: int) -> BinaryIO | BufferedReader:
        return BufferedReader(_StoredFile(self.path), block_bytes)


class _Url(_ArchivedPath):
    """A URL, also of an archive or inside an archive."""

    shows_unfinished = True

    def why_unread(self, error: OSError) -> str | None:
        # Nobody knows what a store that fails would have listed.
        return str(error) if ODD_KEY in str(error) else None


class ClusterUrl(NamedTuple):
    """A running cluster, or a topic or partition of it: it gives offsets and no files."""

    scheme: str
    """`kafka`, or `kafkas` for connections with TLS."""
    bootstrap_servers: str
    """`host:port`, or several separated by commas."""
    topic: str | None
    partition: int | None

    @property
    def cluster(self) -> str:
        """The URL of the whole cluster."""
        return f"{self.scheme}://{self.bootstrap_servers}"

    def of(self, topic: str, partition: int) -> str:
        """The URL of a partition."""
        return f"{self.cluster}/{topic}/{partition}"

    def includes(self, topic: str, partition: int) -> bool:
        """True for the partitions that the URL names."""
        return self.topic in (None, topic) and self.partition in (None, partition)


def cluster_of(path: AnyPath) -> ClusterUrl | None:
    """The running cluster that a URL such as `kafka://host:9092/topic/0` names; None for any other path.

    Raises:
        RefusedError: for a password, no broker, or more than a topic and a partition.

    """
    text = local_path(path)
    match = _CLUSTER.fullmatch(text)
    if match is None:
        return None
    if "@" in match[2]:
        raise RefusedError(
            f"{match[1]}://...@{match[2].rpartition('@')[2]}: a user and a password are properties of a file,"
            " which --command-config names, and no part of a URL"
        )
    try:
        mount_point(text)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    scheme, hosts, names = match[1].lower(), match[2], match[3].strip("/").split("/")
    servers = [host if re.search(r":\d+$", host) else f"{host}:{_PORT}" for host in hosts.split(",") if host]
    topic, partition, *others = [name for name in names if name] + [None, None]
    if not servers or any(others) or (partition is not None and not re.fullmatch(r"\d{1,9}", partition)):
        raise RefusedError(f"{text}: expected {scheme}://HOST:PORT[,HOST:PORT...][/TOPIC[/PARTITION]]")
    return ClusterUrl(scheme, ",".join(servers), topic, None if partition is None else int(partition))


def refuse_cluster(path: AnyPath) -> None:
    """Raises RefusedError for a running cluster, where files are needed."""
    if _CLUSTER.fullmatch(local_path(path)):
        raise RefusedError(
            f"{local_path(path)}: a running cluster is read by records, stats, verify and ingest, described"
            " by topics and offsets, compared by diff, and in Python read by PartitionLog, Log and scan; all"
            " else needs a directory, which `magicbyte backup` makes"
        )


def locate(path: AnyPath) -> Location:
    """The location of a path or URL. The path of a local file stays relative if it is.

    Raises:
        RefusedError: for a running cluster, which has no files.

    """
    path = local_path(path)
    refuse_cluster(path)
    if is_url(path):
        return _Url(absolute(path))
    return _ArchivedPath(absolute(path)) if _core.is_stored(path) else _LocalPath(path)


def are_fetched(paths: Iterable[str]) -> bool:
    """True if some of the paths are in stores: reading them is waiting, and what was read is kept a while."""
    return any(map(is_url, paths))


def _examine(entry: os.DirEntry[str]) -> tuple[bool, str | None]:
    """True if an entry is a directory; also the reason if that cannot be determined."""
    try:
        if entry.is_dir():
            return True, None
        if entry.is_symlink():
            entry.stat()
    except FileNotFoundError:
        return False, "it is a symbolic link that leads nowhere"
    except OSError as error:
        return False, str(error.strerror)
    return False, None


def _without_blocking(path: str, flags: int) -> int:
    # Opening a FIFO would wait for a writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class _StoredFile(RawIOBase):
    """A file of a store or an archive, or the content of a compressed segment."""

    def __init__(self, path: str) -> None:
        self._file = _core.StoredFile(path)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(self._position, len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
