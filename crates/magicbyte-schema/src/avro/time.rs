//! Dates and timestamps as text.

use std::fmt::Write as _;

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

/// Year, month and day in the Gregorian calendar (Howard Hinnant's `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
