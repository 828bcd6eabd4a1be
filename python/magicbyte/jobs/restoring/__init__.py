"""The parts of `restore`: nodes, the quorum, the placement of partitions, and the report."""
