"""Reports and runs for other programs: Parquet, Perfetto."""
