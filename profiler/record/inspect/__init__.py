"""What a loader is made of: data set, samplers, batches, the origin of each part."""
