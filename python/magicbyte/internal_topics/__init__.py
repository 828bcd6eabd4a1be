"""The records of Kafka's own topics: `__consumer_offsets`, `__transaction_state`, `__cluster_metadata`."""
