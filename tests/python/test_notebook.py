"""Tables in notebooks: bounded, and harmless whatever the records contain."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import magicbyte
import pytest
from magicbyte.notebook import shown

HOSTILE = [
    b"<script>alert(1)</script>",
    b"</td></table><img src=x onerror=alert(1)>",
    b"&lt;b&gt; ' \" `",
    b"\x00\x1b[31m\r\n\x7f\xff",
    "\u202e\u2066 right to left".encode(),
    b"x" * 100_000,
]


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert [name for name, _ in attrs] in ([], ["colspan"])
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def batch(magic: int, contents: list[bytes], count: int = 1) -> Any:
    builder = magicbyte.RecordsBuilder(magic, magicbyte.Compression.GZIP)
    for offset in range(count):
        for content in contents:
            headers = [(content[:1000], content), ("\udcff", None)] if magic == 2 else None
            builder.append(builder.record_count, offset, content, content, headers)
    return next(magicbyte.read_batches(builder.build()))


def objects(one: Any) -> list[Any]:
    return [one, one[0], one[-1], one.columns(), magicbyte.read_batches(one.to_bytes()).to_arrow()]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_bytes_are_harmless(magic: int, content: bytes) -> None:
    for one in objects(batch(magic, [content])):
        page = Tags(one._repr_html_())
        assert page.tags <= {"table", "caption", "tr", "th", "td"}
        assert page.text.isprintable()
        assert page.text.isascii()


def test_tables_are_bounded() -> None:
    for one in objects(batch(2, HOSTILE, 100)):
        assert len(one._repr_html_()) < 40_000
    builder = magicbyte.RecordsBuilder()
    builder.append(0, 1, b"k", None, [(f"name {number}", b"x") for number in range(5000)])
    (record,) = next(magicbyte.read_batches(builder.build()))
    assert "and 4,990 more" in record._repr_html_()
    assert len(record._repr_html_()) < 4000


@pytest.mark.parametrize("count", [1, 10, 11, 500])
def test_records_that_are_not_shown_are_counted(count: int) -> None:
    one = batch(2, [b"v"], count)
    for table in (one._repr_html_(), one.columns()._repr_html_()):
        assert (f"and {count - 10:,} more" in table) == (count > 10)
        assert table.count("<tr>") == 1 + min(count, 10) + (count > 10)


def test_a_batch_that_does_not_decode_shows_why() -> None:
    data = bytearray(batch(2, [b"v"]).to_bytes())
    data[-1] ^= 1
    page = Tags(next(magicbyte.read_batches(data))._repr_html_())
    assert "CRC mismatch" in page.text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "None"),
        (b"", "b''"),
        (b"\x00\xff", r"b'\x00\xff'"),
        ("\u202e\udcff", r"'\u202e\udcff'"),
        (b"x" * 80, f"b'{'x' * 80}'"),
        (b"x" * 5081, f"b'{'x' * 80}' and 5,001 more"),
    ],
)
def test_content_is_shown_as_a_literal(content: bytes | str | None, text: str) -> None:
    assert shown(content) == text
