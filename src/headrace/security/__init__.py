"""Authentication of clients and brokers."""
