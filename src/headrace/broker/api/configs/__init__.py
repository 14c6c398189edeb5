"""The APIs about configs: of topics, brokers, loggers and client metrics."""
