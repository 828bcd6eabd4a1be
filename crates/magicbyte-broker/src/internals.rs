//! Parts of this crate that `magicbyte-serve` uses. Any version may change them.

pub use crate::consumed_log::{
    Bounds, Consumed, ConsumedLog, FetchAt, Lookup, Slice, Wanted, fetch, list_offset,
};
