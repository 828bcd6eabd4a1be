"""A certificate, and what was found of its files, as an HTML page."""

from __future__ import annotations

import shlex

from magicbyte.cli.html_page import Cell, Value, card, document, facts, text_of
from magicbyte.cli.times import time_text
from magicbyte.jobs.certified import CertificateCheck

__all__ = ["certificate_page"]

_ROWS_SHOWN = 10_000


def certificate_page(check: CertificateCheck) -> str:
    """The page: the command, the sums, and every file with its digest."""
    certificate = check["certificate"]
    bad: list[list[Value]] = [[one["file"], Cell(one["found"], "hanging")] for one in check["differences"]]
    outputs: list[list[Value]] = [
        [name, file["size"], file["sha256"]] for name, file in certificate["outputs"].items()
    ]
    inputs: list[list[Value]] = [
        [path, file["size"], file["sha256"] or "changed or deleted while the job ran"]
        for path, file in certificate["inputs"].items()
    ]
    sums: list[list[Value]] = [
        [f"{one['topic']}-{one['partition']}", one["segments"], one["size"], one["batches"], one["records"]]
        for one in certificate["written"]
    ]
    balanced = certificate["balanced"]
    figures = [
        ("outputs", "files written", f"{len(outputs):,}", False),
        ("differences", "not as certified", f"{len(bad):,}", bool(bad)),
        ("inputs", "segments read", f"{len(inputs):,}", False),
        ("problems", "problems in them", f"{certificate['problems']:,}", certificate["problems"] > 0),
        ("balanced", "sums", "add up" if balanced else "do not add up", not balanced),
    ]
    tables = (
        ("Not as certified", ["file", "found"], bad),
        ("Partitions", ["partition", "segments", "bytes", "batches", "records"], sums),
        ("Written", ["file", "bytes", "SHA-256"], outputs),
        ("Read", ["segment", "bytes", "SHA-256"], inputs),
    )
    cards = (card(title, "", names, rows, most=_ROWS_SHOWN) for title, names, rows in tables)
    title = f"The output is {'' if check['equal'] else 'not '}as certified"
    body = (
        f'<section class="history">\n<h1>{title}</h1>\n'
        f'<p class="path">{text_of(shlex.join(certificate["command"]))}</p>\n'
        f"{facts(figures)}{''.join(cards)}</section>\n"
    )
    footer = (
        f"Written {time_text(certificate['made_ms'])} by magicbyte {text_of(certificate['magicbyte'])}."
        " Of a segment that was growing, the first bytes were read. Confidential values of the command are"
        " hidden."
    )
    return document("verify", title, body, footer)
