"""Forces on joints during a simulation: applied forces, friction, stops, motors."""
