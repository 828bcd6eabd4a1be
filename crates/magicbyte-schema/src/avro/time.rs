//! Dates and timestamps as text.

use std::fmt::Write as _;

use crate::calendar::date;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A date as `"2026-11-23"`, from the days since 1970.
pub(super) fn put_date(out: &mut String, days: i64) {
    let (year, month, day) = date(days);
    let _ = write!(out, "\"{year:04}-{month:02}-{day:02}\"");
}

/// A timestamp as `"2026-11-23T18:30:00.000001Z"`, or without the `Z` if it is local, from the microseconds since 1970.
pub(super) fn put_timestamp(out: &mut String, micros: i64, utc: bool) {
    let (year, month, day) = date(micros.div_euclid(MICROS_PER_DAY));
    let of_day = micros.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction != 0 {
        let _ = write!(out, ".{fraction:06}");
    }
    out.push_str(if utc { "Z\"" } else { "\"" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_timestamps() {
        let mut out = String::new();
        put_date(&mut out, 0);
        put_date(&mut out, -1);
        put_date(&mut out, 20_780);
        put_timestamp(&mut out, 1_000_001, true);
        put_timestamp(&mut out, -1_000_000, false);
        let expected = concat!(
            "\"1970-01-01\"\"1969-12-31\"\"2026-11-23\"",
            "\"1970-01-01T00:00:01.000001Z\"\"1969-12-31T23:59:59\""
        );
        assert_eq!(out, expected);
        // The bounds of what a payload may say.
        put_date(&mut out, i32::MAX.into());
        put_timestamp(&mut out, i64::MIN, true);
        put_timestamp(&mut out, i64::MAX, true);
    }
}
