"""The values of records that brokers and controllers write for themselves."""
