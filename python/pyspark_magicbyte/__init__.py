"""Makes `spark.read.format("magicbyte")` work without registration.

Spark imports every module whose name begins with `pyspark_` when a job first asks for a Python data
source, and registers its `DefaultSource`. All else is imported when the source is used.
"""

from magicbyte.spark.source import MagicbyteDataSource as DefaultSource

__all__ = ["DefaultSource"]
