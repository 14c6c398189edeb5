"""The log on disk: Kafka's files, bit for bit."""
