"""Event-driven contact: phases in which contacts stay what they are, and events between them."""
