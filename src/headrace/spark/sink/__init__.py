"""Rows of Spark as records of Kafka: `df.write.format("headrace")`, batch and streaming."""
