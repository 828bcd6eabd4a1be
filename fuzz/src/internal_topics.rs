//! Any bytes as a record of an internal topic.

use magicbyte_protocol::internal_topics::{CommittedOffsets, TopicRecord, read_data, read_record};

const OFFSETS: &str = "__consumer_offsets";
const TOPICS: [&str; 5] =
    [OFFSETS, "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"];

/// The first byte chooses the topic, the second is the key's size. The fold of committed offsets, which does not read
/// known keys again, accepts what the reader accepts.
pub fn internal_topics(data: &[u8]) {
    let Some((&[topic, size], bytes)) = data.split_first_chunk() else { return };
    let Some((key, value)) = bytes.split_at_checked(size.into()) else { return };
    for name in ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"] {
        let _ = read_data(name, value);
    }
    let topic = TOPICS[usize::from(topic) % TOPICS.len()];
    let read = read_record(topic, Some(key), Some(value));
    if topic != OFFSETS {
        return;
    }
    let mut offsets = CommittedOffsets::default();
    for round in 0..2 {
        match (&read, offsets.replay(round, Some(key), Some(value), None)) {
            (Ok(TopicRecord::Known { record_type: 0 | 1, .. }), Ok(true)) => {
                assert_eq!(offsets.commits().map(|one| one.record_offset).collect::<Vec<_>>(), [round]);
            }
            (Err(read), Err(folded)) => assert_eq!(*read, folded),
            (_, Ok(false)) => assert_eq!(offsets.commits().count(), 0),
            (read, folded) => panic!("{read:?}, but folded: {folded:?}"),
        }
    }
    let other = offsets.replay(2, Some(key), Some(value), Some(7));
    assert_eq!(offsets.pending(), usize::from(matches!(other, Ok(true))));
    if let Ok(true) = offsets.replay(3, Some(key), None, None) {
        assert_eq!((offsets.commits().count(), offsets.pending()), (0, 0));
    }
}
