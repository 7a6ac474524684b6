"""A page that plays a scene: one file, no server, no network."""
