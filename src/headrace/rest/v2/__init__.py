"""Version 2: topics, produce and consumer instances."""
