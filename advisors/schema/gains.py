"""The smallest gain that counts."""

# The smallest factor on batches a second for which a change is worth making, naming or trying.
LEAST_GAIN = 1.03
