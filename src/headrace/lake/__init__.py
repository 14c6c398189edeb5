"""Tables of the lake: Delta Lake by its wheel, without Spark and without a JVM."""
