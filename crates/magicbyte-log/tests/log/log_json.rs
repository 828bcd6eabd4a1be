//! The JSON of the plain data that the steps of a job exchange: its names are stable.

use serde_json::{from_str, to_string};

use magicbyte_log::steps::{Plan, Survey, plan_partition, survey_segment};
use magicbyte_log::{FileChange, IgnoreReason, Listing, PlanOptions, SidecarKind, list_partition};
use magicbyte_testing::partitions;

#[test]
fn kinds_are_serialised_by_name() {
    for (kind, name) in [
        (SidecarKind::OffsetIndex, "index"),
        (SidecarKind::TimeIndex, "timeindex"),
        (SidecarKind::TransactionIndex, "txnindex"),
        (SidecarKind::ProducerSnapshot, "snapshot"),
        (SidecarKind::LeaderEpochCheckpoint, "leader-epoch-checkpoint"),
        (SidecarKind::PartitionMetadata, "partition.metadata"),
    ] {
        assert_eq!((kind.name(), to_string(&kind).unwrap()), (name, format!("\"{name}\"")));
    }
    for (reason, name) in [
        (IgnoreReason::Deleted, "deleted"),
        (IgnoreReason::Cleaned, "cleaned"),
        (IgnoreReason::Swap, "swap"),
        (IgnoreReason::Checkpoint, "checkpoint"),
        (IgnoreReason::Foreign, "foreign"),
        (IgnoreReason::Overlapping, "overlapping"),
        (IgnoreReason::Directory, "directory"),
        (IgnoreReason::Special, "special"),
        (IgnoreReason::Unreadable, "unreadable"),
    ] {
        assert_eq!((reason.name(), to_string(&reason).unwrap()), (name, format!("\"{name}\"")));
    }
    for (change, name) in [
        (FileChange::Created, "created"),
        (FileChange::Changed, "changed"),
        (FileChange::Unchanged, "unchanged"),
        (FileChange::Removed, "removed"),
    ] {
        assert_eq!(to_string(&change).unwrap(), format!("\"{name}\""));
    }
}

#[test]
fn listings_surveys_and_plans_read_back_the_same() {
    for directory in partitions() {
        let listing = list_partition(&directory, true).unwrap();
        assert_eq!(from_str::<Listing>(&to_string(&listing).unwrap()).unwrap(), listing);
        let surveys: Vec<Survey> =
            listing.segments.iter().map(|segment| survey_segment(segment).unwrap()).collect();
        assert_eq!(from_str::<Vec<Survey>>(&to_string(&surveys).unwrap()).unwrap(), surveys);
        let plan = plan_partition(&listing, &surveys, PlanOptions::default()).unwrap();
        assert_eq!(from_str::<Plan>(&to_string(&plan).unwrap()).unwrap(), plan);
    }
}
