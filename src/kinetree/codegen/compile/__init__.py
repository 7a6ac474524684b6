"""Text to machine code."""
