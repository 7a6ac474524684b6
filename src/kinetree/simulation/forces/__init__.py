"""What acts on joints while they move: applied forces, friction, stops, motors."""
