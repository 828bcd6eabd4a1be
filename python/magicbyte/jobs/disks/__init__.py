"""The parts of `magicbyte cluster`: what the disks say about brokers, topics, groups and transactions."""
