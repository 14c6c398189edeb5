"""What a registry knows: names, records, contracts, and the state that they add up to."""
