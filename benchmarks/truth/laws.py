"""Extreme masses, rolling friction, restitution."""

from kinetree.model import geometry as g
from truth.judge import Judge
from truth.registry import G, row
from truth.scene import Scene, Thing
from truth.verdict import Limits, Result, judged, limits_of


@row("1 t on a 1 g ball")
def ton_on_ball() -> Result:
    """A heavy box on a light ball."""
    scene = Scene(
        (
            Thing("ball", g.Sphere(0.05), 1e-3, (0, 0, 0.05)),
            Thing("block", g.Box((0.4, 0.4, 0.2)), 1000.0, (0.003, 0.002, 0.2005)),
        ),
        steps=500,
    )
    return judged("1 t on a 1 g ball", scene, Limits(gain=1e-3, cone=1e-2))


@row("stack 1:1e5")
def heavy_stack() -> Result:
    """Boxes, each ten times heavier than the one below, dropped a little."""
    things = [
        Thing(f"box{k}", g.Box((0.2, 0.2, 0.2)), 10.0**k, (0.01 * (k % 2), 0, 0.1 + 0.205 * k))
        for k in range(6)
    ]
    scene = Scene(tuple(things), steps=500)
    return judged("stack 1:1e5", scene, Limits(gain=1.0, cone=1.0))


def rolling_ball(rolling=0.01, mu=0.5) -> Scene:
    """A ball that rolls at 2 m/s."""
    ball = Thing("ball", g.Sphere(0.1), 1.0, (0, 0, 0.1), velocity=(2.0, 0, 0), spin=(0, 20.0, 0))
    return Scene((ball,), friction=mu, rolling=rolling, steps=250)


@row("rolling friction")
def rolling() -> Result:
    """Deceleration of a ball that rolls: rolling / (1.4 r) g, if limits are independent."""
    scene = rolling_ball()
    judge = Judge(scene)
    speed = judge.bodies.state(judge.world.q, judge.world.qd).v[0, 0]
    steps = judge.run()
    s = judge.bodies.state(judge.world.q, judge.world.qd)
    spin = judge.bodies.spins(s.R, s.L)[0]
    ratio = (speed - s.v[0, 0]) / 0.5 / (0.01 / 0.1 / 1.4 * G)
    slides = abs(s.v[0, 0] - 0.1 * spin[1])
    result = Result("rolling friction").add(judge, steps, limits_of(scene))
    result.figure = f"deceleration {ratio:.4f} of the expected, slip {slides:.1e} m/s"
    result.numbers = {"ratio": ratio, "slip": slides}
    result.fine = abs(ratio - 1) < 1e-3 and slides < 1e-6
    return result


@row("restitution")
def restitution() -> Result:
    """A ball with restitution 0.3 from 1 m: it returns to 0.09 m, from the surface."""
    scene = Scene((Thing("ball", g.Sphere(0.1), 1.0, (0, 0, 1.1)),), restitution=0.3, steps=400)
    judge = Judge(scene)
    heights, speeds, steps = [1.0], [0.0], []
    for _ in range(scene.steps):
        steps.append(judge.step())
        s = judge.bodies.state(judge.world.q, judge.world.qd)
        heights.append(s.x[0, 2] - 0.1)
        speeds.append(s.v[0, 2])
    up = next(k for k, v in enumerate(speeds) if v > 0)
    back = next(k for k in range(up, len(speeds)) if speeds[k] < 0)
    top, low = heights[up] + speeds[up] ** 2 / (2 * G), min(heights[:back])
    result = Result("restitution").add(judge, steps, limits_of(scene))
    result.numbers = {"height": top, "lowest": low}
    result.figure = (
        f"bounces to {top:.5f} m (0.09), lowest point {1e3 * low:.2f} mm above the ground"
    )
    result.fine = abs(top - 0.09) < 2e-4
    return result
