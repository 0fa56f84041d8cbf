"""Studies that measure the tables and figures of papers on recommenders."""
