"""Programs as text, one module for each language."""
