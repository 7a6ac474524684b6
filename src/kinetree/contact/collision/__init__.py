"""Where shapes touch, in compiled code: boxes and sweep, narrow phases, materials of contacts."""
