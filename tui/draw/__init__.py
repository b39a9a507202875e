"""From a `Snapshot` to styled text: pure functions of the snapshot and the room there is."""
