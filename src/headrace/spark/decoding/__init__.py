"""Decoding payloads of JSON, CSV, Avro and Protobuf to typed columns, by schema or registry."""
