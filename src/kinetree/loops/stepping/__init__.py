"""Steps of mechanisms with loops: constrained accelerations, projection, charts, options."""
