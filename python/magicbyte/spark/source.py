"""The data source that Spark finds under the name `magicbyte`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from magicbyte.spark.cluster_reader import ClusterReader
    from magicbyte.spark.cluster_stream import ClusterStreamReader
    from magicbyte.spark.reader import MagicbyteReader
    from magicbyte.spark.stream import MagicbyteStreamReader
    from magicbyte.spark.typed import Decoders
    from magicbyte.spark.writer import MagicbyteWriter

__all__ = ["MagicbyteDataSource"]


class MagicbyteDataSource(DataSource):
    """Reads Kafka's segment files as the Kafka source reads topics, but without a broker.

    ``spark.read.format("magicbyte").option("path", "/backup/kafka-logs").load()``, or ``readStream``. With
    the option ``kafka.bootstrap.servers`` in place of ``path``, it reads a running cluster.

    Columns and options are named as in Spark's Kafka source, if it has them; `spark/options.py` lists all.
    Heavy imports are delayed until a read needs them, since Spark imports this class for every job.
    """

    _found: Decoders | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "magicbyte"

    def schema(self) -> StructType:
        """The columns of the table that the options select."""
        from magicbyte.spark.options import parse_table
        from magicbyte.spark.schema import spark_schema_of

        return spark_schema_of(parse_table(self.options), self._decoders())

    def _decoders(self) -> Decoders:
        """The decoders of typed columns, looked up once: Spark keeps the data source for its readers."""
        if self._found is None:
            from magicbyte.spark.options import parse_options, parse_table
            from magicbyte.spark.typed import decoders_for

            # Parsed as options of a stream, which allow more, since the read may become a stream.
            typed = parse_table(self.options).typed
            self._found = decoders_for(parse_options(self.options, streaming=True)) if typed else ()
        return self._found

    def reader(self, schema: StructType) -> MagicbyteReader | ClusterReader:
        """A reader of the columns of `schema`; a schema from the user selects columns."""
        from magicbyte.spark.cluster_reader import ClusterReader
        from magicbyte.spark.options import parse_options
        from magicbyte.spark.pushdown import PushdownReader
        from magicbyte.spark.reader import MagicbyteReader
        from magicbyte.spark.schema import columns_of

        options = parse_options(self.options)
        # Spark refuses every reader that has `pushFilters` unless pushdown is switched on.
        kind = PushdownReader if options.filter_pushdown else MagicbyteReader
        decoders = self._decoders()
        columns = columns_of(options, schema, decoders)
        if options.cluster is not None:
            return ClusterReader(options.cluster, options, columns, decoders)
        return kind(options, columns, decoders)

    def writer(self, schema: StructType, overwrite: bool) -> MagicbyteWriter:
        """A writer of segments; see `spark/writer.py` for columns and options."""
        from magicbyte.spark.writer import MagicbyteWriter

        return MagicbyteWriter(self.options, schema, overwrite)

    def streamReader(self, schema: StructType) -> MagicbyteStreamReader | ClusterStreamReader:
        """A reader that follows growing directories or a cluster (Spark 4.2 or newer)."""
        from magicbyte.spark.options import parse_stream_options
        from magicbyte.spark.schema import columns_of

        try:
            from magicbyte.spark.cluster_stream import ClusterStreamReader
            from magicbyte.spark.stream import MagicbyteStreamReader
        except ModuleNotFoundError as error:
            if error.name == "pyspark.sql.streaming.datasource":
                raise RuntimeError("readStream needs Spark 4.2 or newer") from None
            raise
        options = parse_stream_options(self.options)
        decoders = self._decoders()
        columns = columns_of(options.read, schema, decoders)
        if options.read.cluster is not None:
            return ClusterStreamReader(options.read.cluster, options, columns, decoders)
        return MagicbyteStreamReader(options, columns, decoders)
