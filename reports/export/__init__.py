"""Reports and runs for other programs: JSON, Parquet, Perfetto, speedscope."""
