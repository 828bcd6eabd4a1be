"""The state that the records of `__cluster_metadata` add up to (Kafka's `MetadataImage`).

`cluster` folds the records, and each other module one kind of them.
"""
