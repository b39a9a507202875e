"""Rules about making a batch: reading, decoding, computing, collating."""
