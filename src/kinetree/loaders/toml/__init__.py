"""TOML files with lines, limits, expressions and parameters: what our own formats share."""
