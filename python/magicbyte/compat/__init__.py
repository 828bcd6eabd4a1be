"""Drop-ins for what Kafka clients do inside, on the compiled core.

`magicbyte.compat.aiokafka` stands in for `aiokafka.record`, `magicbyte.compat.kafka_python` for
`kafka.record`: one `install()`, and producers and consumers are as they were, but for the time they take.
What differs is listed in `docs/dropins.md`.
"""
