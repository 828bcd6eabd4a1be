//! The docstrings of `_stubs/serve.pyi`. Written by `make docstrings`.

macro_rules! serve {
    (ServerCore) => {
        r"Serves the partitions of PartitionListings (JSON). See `magicbyte.serve` for the arguments.

`listen` is a host and a port, 0 for any free one; `topics` has the id and the configs of topics, and
`committed` what groups had committed: group, topic, partition, offset, leader epoch (-1 if unknown),
metadata. Raises OSError if the address cannot be listened on."
    };
    (ServerCore.address) => {
        r"The host and port that the server listens on."
    };
    (ServerCore.connections) => {
        r"The number of open connections."
    };
    (ServerCore.stop) => {
        r"Closes all connections. Does nothing if that was done before."
    };
}
pub(crate) use serve;
