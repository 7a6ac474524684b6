"""Integration of motions in time: fields of accelerations, integrators, steps, events.

A ``Field`` gives accelerations, an ``Integrator`` turns them into a step on the configuration
manifold, a ``Stepper`` compiles the step and takes it, a ``Watcher`` locates events inside it.
Loops and contact build on these; ``kinetree.simulation`` puts them together.
"""
