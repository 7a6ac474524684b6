"""What there is to see, and where it is over time: no window, no browser, no renderer."""
