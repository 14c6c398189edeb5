"""A data streaming platform that every Kafka client takes for Kafka."""
