# The versions of Kafka in the tests. The Makefile includes this file, and kafka_versions.py reads it. A value on
# make's command line replaces one of these.
#
# Its own classes and brokers judge what is read and written: first the newest version, which also has the newest
# messages and records of internal topics.
JUDGES := 4.4.0 4.3.1
# The last version that builds magic 0 and 1, and that has messages since removed.
BUILDS := 3.9.1
# An old client, for `serve`, and an old broker.
OLD := 2.8.2
# The oldest broker that the client reads; its Scala is older, too.
OLDEST := 0.10.2.2
OLDEST_SCALA := 2.11
