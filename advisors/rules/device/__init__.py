"""Rules about what happens between a batch at hand and a step of the device."""
