"""A schema registry for any Kafka, by Confluent's REST interface and in its topic `_schemas`."""
