"""The demonstration: the main job on conversations in the clients' real formats."""
