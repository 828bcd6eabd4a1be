"""Writes tests/corpus/*.jsonl: the cases with Kafka's verdicts."""

from __future__ import annotations

import json

from corpus import DIRECTORY, answer
from corpus_cases import files
from intended import intended
from kafka_versions import NEWEST
from oracle import Builder, Oracle
from reading import difference, read


def main() -> None:
    builder, oracle = Builder(), Oracle(NEWEST)
    for name, cases in files(builder).items():
        with (DIRECTORY / f"{name}.jsonl").open("w", encoding="utf-8") as out:
            for (label, description, data), verdict in zip(
                cases, oracle.read(c[2] for c in cases), strict=True
            ):
                found = difference(verdict, read(data))
                if found is not None and intended(found) is None:
                    raise SystemExit(f"{label}: {found.text}: {data.hex()[:1000]}")
                case = {
                    "id": label,
                    "description": description,
                    "magic": verdict["batches"][0]["header"][0] if verdict["batches"] else None,
                    "hex": data.hex(),
                    "kafka_version": NEWEST,
                    **answer(verdict),
                }
                if found is not None:
                    case["differs"] = intended(found)
                out.write(json.dumps(case, separators=(",", ":")) + "\n")
    builder.close()
    oracle.close()


if __name__ == "__main__":
    main()
