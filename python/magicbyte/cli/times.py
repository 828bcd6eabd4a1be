"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["time_text"]


def time_text(millis: int | None) -> str | None:
    """A time in ISO 8601, or in milliseconds if it is outside the calendar's range."""
    if millis is None:
        return None
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis} ms"
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
