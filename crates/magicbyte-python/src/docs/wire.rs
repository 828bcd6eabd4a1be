//! The docstrings of `_stubs/wire.pyi`. Written by `make docstrings`.

macro_rules! wire {
    (WireReader) => {
        r"Reads capture files, one after the other, as one capture."
    };
    (WireReader.of_streams) => {
        r"Reads the bytes of one connection, from a file for each direction."
    };
    (WireReader.next_block) => {
        r"The next exchanges: at most some MiB, or a single exchange; none at the end."
    };
    (WireReader.summary) => {
        r"The contents besides exchanges so far, in the order of `magicbyte.wire.WireSummary`."
    };
    (request_record_sets) => {
        r"Topic, topic id, partition and batches of each record set of a request."
    };
    (response_record_sets) => {
        r"The same of a response to a request of this API and version."
    };
}
pub(crate) use wire;
