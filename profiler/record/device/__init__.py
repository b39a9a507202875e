"""Time on the device: events around steps, and host-to-device copies."""
