"""Avro: schemas and their canonical texts, values as bytes or JSON, container files, SQL tables."""
