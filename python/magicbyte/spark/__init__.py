"""The Spark data source: `spark.read.format("magicbyte").load("/backup/kafka-logs")`."""
