"""A picture, what a camera measures, and a page that plays."""

from pathlib import Path

import kinetree as kt

world = kt.World()
world.add_ground()
world.add(Path(__file__).parent / "arm.urdf", name="arm", fixed=True)
ball = world.add(kt.geometry.Sphere(0.08), mass=0.2, at=(0.5, 0.3, 0.8), name="ball")

camera = kt.camera((1.6, -1.4, 1.1), target=(0.1, 0.1, 0.4), size=(320, 240))
seen = world.render(camera, ("color", "depth", "body"))  # no screen and no graphics card needed
print("colours", seen["color"].shape, "and depths", seen["depth"].shape)
body = world.model.body_names.index("ball")
print(f"the ball is {seen['depth'][seen['body'] == body].min():.2f} m away")

motion = kt.simulate(world, duration=0.5)
kt.viewer.picture(motion, "falling.png", at=0.25)
kt.viewer.save_html(motion, "falling.html")  # one file that plays offline: send it to a colleague
for name in ("falling.png", "falling.html"):
    print(f"see {name}:", Path(name).stat().st_size > 10_000)
