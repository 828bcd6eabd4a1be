"""Finding partitions: their directories, their cluster, and the choice among them."""
