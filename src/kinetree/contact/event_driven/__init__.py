"""Event-driven contact: phases in which contacts keep their modes, and events between them."""
