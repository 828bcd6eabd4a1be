//! The checkpoints in a broker's directory that have an offset for each partition, as text
//! (`OffsetCheckpointFile`).

use crate::error::{ErrorKind, Result};

/// The name of the checkpoint with the log start offsets (`LogManager`).
#[doc(hidden)]
pub const LOG_START_OFFSET_CHECKPOINT: &str = "log-start-offset-checkpoint";

/// The offset that the checkpoint has for a partition; None if it has none.
///
/// # Errors
/// [`ErrorKind::InvalidSidecar`] if the text is not a whole checkpoint of version 0.
#[doc(hidden)]
pub fn offset_in_checkpoint(text: &str, topic: &str, partition: i32) -> Result<Option<i64>> {
    let invalid = |why| Err(ErrorKind::InvalidSidecar(why).into());
    let mut lines = text.lines();
    match lines.next() {
        None => return Ok(None),
        Some("0") => {}
        Some(_) => return invalid("unknown version of an offset checkpoint"),
    }
    // As in Kafka, a file that ends here has no entries.
    let Ok(count) = lines.next().unwrap_or("0").parse::<u32>() else {
        return invalid("line 2 of the checkpoint is not the number of entries");
    };
    let (mut entries, mut offset) = (0_u32, None);
    for line in lines {
        let mut fields = line.split_ascii_whitespace();
        let (Some(name), Some(number), Some(value), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return invalid("a line of the checkpoint is not `topic partition offset`");
        };
        let (Ok(number), Ok(value)) = (number.parse::<i32>(), value.parse::<i64>()) else {
            return invalid("a line of the checkpoint is not `topic partition offset`");
        };
        entries = entries.saturating_add(1);
        if (name, number) == (topic, partition) {
            offset = Some(value);
        }
    }
    if entries != count {
        return invalid("the checkpoint has not as many entries as it announces");
    }
    Ok(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_a_partition_is_found_in_a_whole_checkpoint() {
        let found = |text| offset_in_checkpoint(text, "t", 1).expect("a checkpoint");
        assert_eq!(found("0\n2\nt 0 5\nt 1 7\n"), Some(7));
        assert_eq!(found("0\n1\r\nt 1 -3"), Some(-3));
        assert_eq!((found(""), found("0\n"), found("0\n1\nt 2 5\n")), (None, None, None));
        for text in [
            "1\n0\n",
            "0\nx\n",
            "0\n-1\n",
            "0\n2\nt 1 7\n",
            "0\n1\nt 1\n",
            "0\n1\nt 1 7 8\n",
            "0\n1\nt x 7\n",
        ] {
            assert!(offset_in_checkpoint(text, "t", 1).is_err(), "{text:?}");
        }
    }
}
