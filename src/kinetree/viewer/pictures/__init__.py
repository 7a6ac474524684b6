"""Pictures and films without a screen, a browser or a graphics card."""
