"""Verdicts: the copy that is in the wrong topic, the strength of the evidence, and topics that share data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from magicbyte.jobs.auditing.copies import RULES
from magicbyte.jobs.auditing.headers import HeaderTable
from magicbyte.jobs.auditing.likeness import Likeness

__all__ = [
    "EVIDENCE",
    "LIKELY",
    "POSSIBLE",
    "STRENGTHS",
    "SharingTopics",
    "Strength",
    "find_filled_gaps",
    "find_sharing",
    "judge_copies",
]

Strength = Literal["proven", "likely", "possible"]
STRENGTHS: tuple[Strength, ...] = ("proven", "likely", "possible")
"""`proven`: the batch has the records and the producer's sequence of a batch of another topic, where the
sequence fits, and it does not fit in this one. `likely`: it is such a copy, and more speaks for the other
topic, or the batch before it in this one may have been deleted; or its sequence fills a gap of another topic
exactly; or its schemas have no subject of this topic. `possible`: which of two copies is in the wrong topic
is unknown, or its schema id is rare here and common in another topic."""
PROVEN, LIKELY, POSSIBLE = range(3)
"""The numbers of the strengths."""

EVIDENCE = (*RULES, "out_of_sequence", "unlike_topic", "fills_gap", "schema_of_other_topic")
"""The names of evidence: what the headers of a batch and its copy have in common, and what else speaks
against the batch's topic."""

_SHARED_BATCHES = 10
_SHARED_FRACTION = 0.1
"""Topics share data, as retries, dead letters and mirrors do, if they have so many copies, and these are such
a part of the smaller topic. Misrouted batches are rare."""
_MOST_GAPS = 1_000
"""Batches that fill a gap, at most."""
_MOST_COMPARED = 2_000
"""Pairs of copies whose neighbours are read at most; further pairs are `possible`."""

_SHARING = f"""
CREATE TABLE sharing AS
WITH pairs AS (
    SELECT one.topic AS first, other.topic AS second, least(
        count(DISTINCT (one.log, one.baseOffset)), count(DISTINCT (other.log, other.baseOffset))
    ) AS batches
    FROM copies one JOIN copies other USING (original)
    WHERE one.topic < other.topic GROUP BY ALL
), sizes AS (SELECT topic, count(*) AS batches FROM headers GROUP BY topic)
SELECT pairs.first, pairs.second, pairs.batches, least(one.batches, other.batches) AS of_batches
FROM pairs JOIN sizes one ON one.topic = pairs.first JOIN sizes other ON other.topic = pairs.second
WHERE pairs.batches >= greatest({_SHARED_BATCHES}, {_SHARED_FRACTION} * of_batches)
"""

_FINDINGS = """
CREATE TABLE findings (
    strength INTEGER, rule INTEGER, evidence VARCHAR, topic INTEGER, log INTEGER, segment INTEGER,
    position BIGINT, size INTEGER, baseOffset BIGINT, lastOffset BIGINT, count INTEGER, maxTimestamp BIGINT,
    producerId BIGINT, producerEpoch SMALLINT, baseSequence INTEGER, of_log INTEGER, of_segment INTEGER,
    of_position BIGINT, of_size INTEGER, of_first BIGINT, of_last BIGINT
)
"""

_OF_SUSPECT = """
    one.topic, one.log, one.segment, one.position, one.size, one.baseOffset, one.lastOffset, one.count,
    one.maxTimestamp, one.producerId, one.producerEpoch, one.baseSequence
"""

# A batch in its place follows one of its producer, or is followed by one: in its segment, or across the
# border of two, where headers do not say so. A copy in a foreign partition does neither, unless the sequence
# fits there by chance. In a log whose start was deleted, the batch before the producer's first one may have
# been deleted, too.
_JUDGED = f"""
INSERT INTO findings
WITH own AS (
    SELECT log, producerId, producerEpoch, min(baseOffset) AS first FROM headers
    WHERE producerId >= 0 GROUP BY log, producerId, producerEpoch
), starts AS (SELECT log, min(baseOffset) AS first FROM headers GROUP BY log), fitting AS (
    SELECT one.*, starts.first > 0 AND own.first = one.baseOffset AS may_follow,
        one.follows OR one.followed OR (may_follow AND starts.first = one.baseOffset) OR EXISTS (
            SELECT 1 FROM headers before WHERE NOT before.followed
            AND (before.log, before.producerId, before.producerEpoch, before.nextSequence)
                = (one.log, one.producerId, one.producerEpoch, one.baseSequence) AND one.producerId >= 0
        ) OR EXISTS (
            SELECT 1 FROM headers after WHERE NOT after.follows
            AND (after.log, after.producerId, after.producerEpoch, after.baseSequence)
                = (one.log, one.producerId, one.producerEpoch, one.nextSequence) AND one.producerId >= 0
        ) AS fits
    FROM copies one JOIN starts USING (log) LEFT JOIN own USING (log, producerId, producerEpoch)
)
SELECT
    CASE WHEN one.fits = other.fits THEN {POSSIBLE} WHEN one.may_follow THEN {LIKELY} ELSE {PROVEN} END,
    one.rule,
    CASE WHEN one.fits <> other.fits THEN 'out_of_sequence' END,
    {_OF_SUSPECT}, other.log, other.segment, other.position, other.size, other.baseOffset, other.lastOffset
FROM fitting one JOIN fitting other USING (original)
WHERE one.topic <> other.topic AND one.fits <= other.fits AND NOT EXISTS (
    SELECT 1 FROM sharing
    WHERE first = least(one.topic, other.topic) AND second = greatest(one.topic, other.topic)
)
"""

# Keys are unique: sequences of one value in many batches, which no producer writes, would all be joined.
_GAPS = f"""
CREATE TABLE gaps AS
WITH orphans AS (
    SELECT * FROM headers one
    WHERE producerId >= 0 AND NOT follows AND NOT followed AND baseSequence > 0
    AND NOT EXISTS (SELECT 1 FROM findings WHERE (log, baseOffset) = (one.log, one.baseOffset))
    AND NOT EXISTS (
        SELECT 1 FROM headers own WHERE (own.log, own.producerId, own.producerEpoch, own.nextSequence)
            = (one.log, one.producerId, one.producerEpoch, one.baseSequence)
    )
    AND NOT EXISTS (
        SELECT 1 FROM headers own WHERE (own.log, own.producerId, own.producerEpoch, own.baseSequence)
            = (one.log, one.producerId, one.producerEpoch, one.nextSequence)
    )
    QUALIFY count(*) OVER (PARTITION BY producerId, producerEpoch, baseSequence, nextSequence) = 1
), before AS (
    SELECT topic, log, producerId, producerEpoch, nextSequence, any_value(lastOffset) AS last
    FROM headers WHERE producerId >= 0 AND NOT followed GROUP BY ALL HAVING count(*) = 1
), after AS (
    SELECT log, producerId, producerEpoch, baseSequence, any_value(baseOffset) AS first
    FROM headers WHERE producerId >= 0 AND NOT follows GROUP BY ALL HAVING count(*) = 1
)
SELECT {_OF_SUSPECT}, before.log AS of_log, before.last, after.first
FROM orphans one
JOIN before ON (before.producerId, before.producerEpoch, before.nextSequence)
    = (one.producerId, one.producerEpoch, one.baseSequence) AND before.topic <> one.topic
JOIN after ON (after.log, after.producerId, after.producerEpoch, after.baseSequence)
    = (before.log, one.producerId, one.producerEpoch, one.nextSequence) AND after.first > before.last
LIMIT {_MOST_GAPS}
"""

# Where offsets are missing, too, a cleaner may have removed the batches of the gap.
_WHOLE_GAPS = f"""
INSERT INTO findings
SELECT {LIKELY}, -1, 'fills_gap', gaps.* EXCLUDE (of_log, last, first), of_log, NULL, NULL, NULL, last, first
FROM gaps WHERE first = last + 1 + (
    SELECT coalesce(sum(lastOffset - baseOffset + 1), 0) FROM headers
    WHERE log = gaps.of_log AND baseOffset > gaps.last AND baseOffset < gaps.first
)
"""


class SharingTopics(NamedTuple):
    """Topics that have copies of each other's batches."""

    first: str
    second: str
    batches: int
    of_batches: int
    """The batches of the smaller topic."""


def find_sharing(headers: HeaderTable) -> list[SharingTopics]:
    """Creates the table `sharing`, and returns its rows."""
    headers.database.execute(_SHARING)
    rows = headers.database.execute("FROM sharing ORDER BY batches DESC, first, second").fetchall()
    return [
        SharingTopics(headers.topics[first], headers.topics[second], batches, of_batches)
        for first, second, batches, of_batches in rows
    ]


def judge_copies(headers: HeaderTable, likeness: Likeness) -> None:
    """Creates the table `findings`: copies in the wrong topic, and the batch that each is a copy of.

    Where sequences do not decide, the batches around both copies do: the copy that is less like its
    neighbours is in the wrong topic.
    """
    database = headers.database
    database.execute(_FINDINGS)
    database.execute(_JUDGED)
    undecided = database.execute(
        f"""
        SELECT log, segment, position, size, baseOffset, of_log, of_segment, of_position, of_size, of_first
        FROM findings WHERE strength = {POSSIBLE} AND log < of_log GROUP BY ALL
        ORDER BY log, baseOffset LIMIT {_MOST_COMPARED}
        """
    ).fetchall()
    for row in undecided:
        one, other = row[:5], row[5:]
        better = likeness.compare(one, other)
        if better == 0:
            continue
        wrong, right = (one, other) if better < 0 else (other, one)
        places = [wrong[0], wrong[4], right[0], right[4]]
        at = "WHERE (log, baseOffset, of_log, of_first) = (?, ?, ?, ?)"
        database.execute(
            f"UPDATE findings SET strength = {LIKELY}, evidence = 'unlike_topic' {at}",
            places,
        )
        database.execute(f"DELETE FROM findings {at}", places[2:] + places[:2])


def find_filled_gaps(headers: HeaderTable) -> None:
    """Adds batches to `findings` that are no copy: the sequence does not fit in their topic, and is exactly
    the gap in that of the producer in a partition of another topic, where no offsets are missing.
    """
    headers.database.execute(_GAPS)
    headers.database.execute(_WHOLE_GAPS)
