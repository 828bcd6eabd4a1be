"""Records of Kafka's internal topics, such as `__consumer_offsets` and `__cluster_metadata`."""
