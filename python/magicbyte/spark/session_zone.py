"""Times without a zone (TIMESTAMP_NTZ), which Spark casts to instants by the session's time zone."""

from __future__ import annotations

import os
import re
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["instants", "session_zone", "with_session_zone"]

_SETTING = "spark.sql.session.timeZone"
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def with_session_zone(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, in a task, with instants for times without a zone in the column `timestamp`."""
    at = batch.schema.get_field_index("timestamp")
    if at < 0 or not pa.types.is_timestamp(batch.schema.field(at).type) or batch.schema.field(at).type.tz:
        return batch
    return batch.set_column(at, "timestamp", instants(batch.column(at), session_zone()))


def session_zone() -> str:
    """The name of the session's time zone: of the setting, or else of this machine, as in the JVM."""
    from pyspark import TaskContext

    context = TaskContext.get()
    named = context.getLocalProperty(_SETTING) if context is not None else None
    named = named or os.environ.get("TZ", "").lstrip(":")
    return named or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2] or "UTC"


def instants(times: pa.Array, zone: str) -> pa.Array:
    """The instants of times in a zone, as in Java: the earlier one of a time that there is twice, and for a
    time that the clock skips, the one as long after the change.

    Raises:
        ValueError: if there is no such zone.

    """
    kind = pa.timestamp(times.type.unit, "UTC")
    rules = _rules(zone)
    if isinstance(rules, timezone):
        shift = pa.scalar(rules.utcoffset(None), pa.duration(times.type.unit))
        return pc.subtract_checked(times, shift).cast(kind)
    found = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    skipped = pc.fill_null(pc.not_equal(pc.local_timestamp(found), times), False)
    found = found.cast(kind)
    if not pc.any(skipped).as_py():
        return found
    replaced = [time.replace(tzinfo=rules).astimezone(UTC) for time in times.filter(skipped).to_pylist()]
    return pc.replace_with_mask(found, skipped, pa.array(replaced, kind))


def _rules(zone: str) -> tzinfo:
    if zone in ("Z", "UTC", "GMT", "UT"):
        return UTC
    if (match := _OFFSET.fullmatch(zone)) is not None:
        sign, hours, minutes, seconds = match.groups("0")
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(zone)
    except (KeyError, OSError, ValueError):  # KeyError: there is no such file
        raise ValueError(f"{_SETTING} {zone!r} is not a time zone that this machine knows") from None
