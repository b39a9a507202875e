"""Rules about which samples are drawn, by whom, and in what order."""
