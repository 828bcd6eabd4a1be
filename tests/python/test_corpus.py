"""The published corpus: magicbyte agrees with Kafka's recorded verdicts. Needs no JVM."""

from __future__ import annotations

from collections import Counter

from corpus import cases, verdict
from intended import intended
from reading import accepted, difference, read


def test_every_case() -> None:
    seen: Counter[str] = Counter()
    for case in cases():
        kafka = verdict(case)
        assert accepted(kafka) == (case["verdict"] == "accept"), case["id"]
        found = difference(kafka, read(bytes.fromhex(case["hex"])))
        name = None if found is None else intended(found)
        assert found is None or name is not None, f"{case['id']}: {found}"
        assert name == case.get("differs"), case["id"]
        seen[case["verdict"]] += 1
    assert seen["accept"] > 150
    assert seen["reject"] > 150


def test_ids_are_unique() -> None:
    ids = Counter(case["id"] for case in cases())
    assert [name for name, count in ids.items() if count > 1] == []
