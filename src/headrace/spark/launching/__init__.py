"""The start of a Spark session, local and on clusters."""
