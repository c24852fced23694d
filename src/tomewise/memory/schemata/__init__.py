"""A hierarchy of schemata that grows batch by batch (CAM)."""
