"""Random MJCF of trees with tendons through space."""

import numpy as np


def numbers(values):
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))


def random_mjcf(rng, *, bodies=5, tendons=4, within=True, attributes="", actuators=""):
    """A random tree; tendons through its sites, around spheres and cylinders, over pulleys.

    Args:
        rng: random numbers.
        bodies: how many.
        tendons: how many.
        within: whether some touch shapes from within.
        attributes: of each tendon.
        actuators: text of them.
    """
    parents = [-1, *(int(rng.integers(-1, i)) for i in range(1, bodies))]
    sites, shapes = [], []

    def things(i):
        found = ""
        for k in range(3):
            sites.append(f"s{i}_{k}")
            found += f'<site name="s{i}_{k}" pos="{numbers(rng.normal(size=3) * 0.4)}"/>'
        for kind in ("sphere", "cylinder"):
            name, r, at = f"{kind}{i}", rng.uniform(0.05, 0.25), rng.normal(size=3) * 0.1
            size = [r] if kind == "sphere" else [r, 0.1]
            found += f'<geom name="{name}" type="{kind}" size="{numbers(size)}" mass="0.1" '
            found += f'pos="{numbers(at)}" quat="{numbers(rng.normal(size=4))}" '
            found += 'contype="0" conaffinity="0"/>'
            d = rng.normal(size=3)
            d *= r / np.linalg.norm(d)
            for side, part in (("beside", rng.uniform(1.2, 2)), ("in", rng.uniform(0, 0.5))):
                found += f'<site name="{side}_{name}" pos="{numbers(at + part * d)}"/>'
            shapes.append(name)
        return found

    def body(i):
        kind = rng.choice(["hinge", "hinge", "slide", "ball"])
        axis = "" if kind == "ball" else f'axis="{numbers(rng.normal(size=3))}"'
        pose = f'pos="{numbers(rng.normal(size=3) * 0.4)}" quat="{numbers(rng.normal(size=4))}"'
        inertia = (
            f'mass="{rng.uniform(0.5, 2)}" diaginertia="{numbers(rng.uniform(0.02, 0.03, 3))}"'
        )
        inside = f'<inertial pos="{numbers(rng.normal(size=3) * 0.05)}" {inertia}/>'
        inside += f'<joint name="j{i}" type="{kind}" {axis} damping="0.1"/>' + things(i)
        carried = "".join(body(k) for k in range(bodies) if parents[k] == i)
        return f'<body name="b{i}" {pose}>{inside}{carried}</body>'

    def path(t):
        found = f'<spatial name="t{t}" {attributes}>'
        for part in range(int(rng.integers(1, 3))):
            found += f'<pulley divisor="{rng.integers(1, 4)}"/>' if part else ""
            through = rng.choice(len(sites), size=int(rng.integers(2, 4)), replace=False)
            for k, s in enumerate(through):
                if k and rng.random() < 0.7:
                    shape = shapes[int(rng.integers(len(shapes)))]
                    sides = ["", f"beside_{shape}", f"in_{shape}"][: 3 if within else 2]
                    side = sides[int(rng.integers(len(sides)))]
                    side = f'sidesite="{side}"' if side else ""
                    found += f'<geom geom="{shape}" {side}/>'
                found += f'<site site="{sites[s]}"/>'
        return found + "</spatial>"

    world = things("w") + "".join(body(k) for k in range(bodies) if parents[k] == -1)
    paths = "".join(path(t) for t in range(tendons))
    return (
        f"<mujoco><worldbody>{world}</worldbody><tendon>{paths}</tendon>"
        f"<actuator>{actuators}</actuator></mujoco>"
    )


def random_muscles(rng, tendons, element="muscle"):
    """A muscle with random curves on each tendon of ``random_mjcf``.

    Args:
        rng: random numbers.
        tendons: how many.
        element: "muscle", or "general" for muscles whose activation is the control.
    """
    found = ""
    for t in range(tendons):
        short, long = np.sort(rng.uniform(0.1, 2.5, 2)) + np.array([0.0, 0.3])
        ends = rng.uniform(0.5, 0.9), rng.uniform(1.0, 1.4)
        peak, scale, vmax = rng.uniform(50, 100), 200, rng.uniform(1, 3)
        curve = rng.uniform(0.3, 0.6), rng.uniform(1.4, 1.9), vmax, *rng.uniform(1.1, 1.6, 2)
        found += f'<{element} tendon="t{t}" lengthrange="{numbers([short, long])}" '
        found += f'gear="{rng.uniform(0.5, 2)}" '
        if element == "muscle":
            names = ("lmin", "lmax", "vmax", "fpmax", "fvmax")
            found += f'force="{peak}" range="{numbers(ends)}" timeconst=".02 .06" '
            found += " ".join(f'{n}="{x}"' for n, x in zip(names, curve, strict=True)) + "/>"
        else:
            prm = numbers([*ends, peak, scale, *curve])
            found += f'gaintype="muscle" biastype="muscle" gainprm="{prm}" biasprm="{prm}"/>'
    return found
