"""The data sets of the recommender suite. Each is a file with its spec; ``FILES`` lists what it needs on disk."""
