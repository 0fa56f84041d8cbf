"""The analyses of the recommender suite. Each is a file with its spec."""
