"""Files that are replaced as a whole: an error leaves what was there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from magicbyte.jobs.comparing.digest_cache import DigestCache
from magicbyte.storage.replacing import replacing


def test_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in ("one", "another"):
        with replacing(str(path)) as file:
            file.write(text)
        assert path.read_text() == text
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_text("before")

    def write() -> None:
        with replacing(str(path)) as file:
            file.write("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    cache = DigestCache(str(path), 1 << 20)
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        cache.save()
    assert [*tmp_path.iterdir()] == [path]
