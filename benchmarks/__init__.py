"""What a node costs: Headrace beside Apache Kafka, with the same clients on the same machine."""
