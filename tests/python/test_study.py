"""docs/study.md: its page is made of its figures, and its sizes are those that the code writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import shapes
import study
import study_page
import study_verdicts

FIGURES: dict[str, Any] = json.loads(study.FIGURES.read_text())
SETS = dict.fromkeys(FIGURES["forms"])
SMALL = [name for name in SETS if "MiB" not in name]


def test_the_page_is_that_of_the_figures() -> None:
    assert study.PAGE.read_text() == study_page.page(FIGURES)


@pytest.mark.parametrize("name", SMALL)
def test_sizes(name: str) -> None:
    ((_, data),) = study.sets([name])
    # gzip's sizes depend on what the processor can do.
    codecs = [codec for codec in study.CODECS if codec != "gzip"]
    found = study.sizes(data, codecs)
    assert found == {codec: FIGURES["forms"][name][codec] for codec in codecs}


def test_sizes_by_level() -> None:
    data = shapes.batches("events", study.TOTALS["16 KiB"], study.BATCHES["16 KiB"])
    levels = [("snappy", None), ("lz4", None), ("zstd", 1), ("zstd", 3), ("zstd", 6)]
    found, _ = study.of_levels(data, 1, levels)
    assert found.items() <= FIGURES["levels"]["events, 16 KiB"].items()


def test_headers_first_need_little_decompression() -> None:
    """Why validation is faster: what is decompressed is the same in every run, unlike speeds."""
    for name in SETS:
        of = FIGURES["forms"][name]["zstd"]
        least = {"two sections": 16, "fields first": 16 if "MiB" in name else 1}
        if name.startswith("sensors"):
            least = {"two sections": 5, "fields first": 4 if "MiB" in name else 1}
        if name == "fixtures":
            least = {"two sections": 3}
        for form, times in least.items():
            assert of["magic 2"]["inspected"] > times * of[form]["inspected"], (name, form)


def test_every_claim_has_a_verdict() -> None:
    rows = study_verdicts.verdicts(FIGURES)
    assert len(rows) >= 19
    assert all(all(cell.strip() for cell in row) for row in rows)
    sources = {source for _, source, _, _ in rows}
    assert {"KIP-98", "KIP-931", "Conduktor", "Aiven's tiered storage", "Cloudflare, 2018"} <= sources
