"""Streams of records by Server-Sent Events and WebSocket."""
