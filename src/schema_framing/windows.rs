//! The windows of Kafka Streams' and ksqlDB's keys: their times follow the key that they belong to.
//!
//! | window | after the key | source |
//! |---|---|---|
//! | time | the start, 8 bytes | `TimeWindowedSerializer` |
//! | session | the end, then the start, 8 bytes each | `SessionWindowedSerializer` |
//!
//! Times are milliseconds since 1970, most significant byte first.

/// The windows of a column of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// None.
    #[default]
    None,
    /// Those that a payload has which cannot be read otherwise, and whose last bytes are such times.
    Auto,
    /// Each key has a time window.
    Time,
    /// Each key has a session window.
    Session,
    /// Each key has a time window and a number, as the changelog topic of a window store has them.
    Store,
}

/// A window of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first millisecond of the window.
    pub start: i64,
    /// The end of a session, the time of its last record; `None` for a time window, whose key does not have it.
    pub end: Option<i64>,
}

/// The times that are taken for windows: the years 2000 to 2099.
const PLAUSIBLE: std::ops::Range<i64> = 946_684_800_000..4_102_444_800_000;

impl Window {
    /// Takes a window off the end of a key. `None` if it is too short, or `windows` says no size.
    #[must_use]
    pub fn split(key: &[u8], windows: Windows) -> Option<(&[u8], Self)> {
        match windows {
            Windows::Time => {
                let (key, start) = split_time(key)?;
                Some((key, Self { start, end: None }))
            }
            Windows::Session => {
                let (rest, start) = split_time(key)?;
                let (key, end) = split_time(rest)?;
                Some((key, Self { start, end: Some(end) }))
            }
            // `WindowKeySchema.toStoreKeyBinary`: the number tells records with one key and time apart.
            Windows::Store => Self::split(key.split_last_chunk::<4>()?.0, Windows::Time),
            Windows::None | Windows::Auto => None,
        }
    }

    /// The same, if the times are in the years 2000 to 2099, and a session does not end before it starts.
    #[must_use]
    pub fn split_plausible(key: &[u8], windows: Windows) -> Option<(&[u8], Self)> {
        let (key, window) = Self::split(key, windows)?;
        let is_plausible = PLAUSIBLE.contains(&window.start)
            && window.end.is_none_or(|end| end >= window.start && PLAUSIBLE.contains(&end));
        is_plausible.then_some((key, window))
    }
}

fn split_time(key: &[u8]) -> Option<(&[u8], i64)> {
    let (key, time) = key.split_last_chunk()?;
    Some((key, i64::from_be_bytes(*time)))
}
