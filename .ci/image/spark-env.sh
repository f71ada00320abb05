# Sourced by Spark's own scripts. The launcher is a JVM that lives for a fraction of a second to
# print the driver's command line: it gains from a quick compiler and a simple collector.
SPARK_LAUNCHER_OPTS="${SPARK_LAUNCHER_OPTS:--Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC}"
