"""Where loops close, how they move, and what they leave free."""
