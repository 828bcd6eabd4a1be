"""The Spark data source: `spark.read.format("magicbyte").option("path", directory).load()`."""
