"""Drop-in replacements for internals of Kafka clients, built on the compiled core.

`magicbyte.compat.aiokafka` replaces `aiokafka.record`, and `magicbyte.compat.kafka_python` replaces
`kafka.record`. After a single `install()`, producers and consumers work as before, only faster. See
`docs/dropins.md` for the differences.
"""

# Loading `magicbyte._core` has put it into `sys.modules`; this makes it an attribute of the package too.
from magicbyte.compat import _core as _core
