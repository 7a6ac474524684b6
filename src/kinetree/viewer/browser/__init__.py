"""The live viewer: a small web server, and a page with sliders, through viser."""
