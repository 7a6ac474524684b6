"""Pages in a headless Chromium: they load, draw, move, and complain of nothing."""

import threading

import imageio.v3 as iio
import numpy as np
import pytest
from imageio_ffmpeg import count_frames_and_secs
from support.chromium import Browser
from support.effort import until

import kinetree as kt
from kinetree import viewer
from kinetree.viewer.browser import controls
from kinetree.viewer.knobs import Knobs
from kinetree.viewer.scenes.places import rotations

DOUBLE = kt.samples.double_pendulum()
LATER = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def browser():
    # No name leads anywhere but to this machine: the network is blocked.
    found = Browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost", size=(480, 400))
    yield found
    found.close()


def swing(**options):
    """A motion that need not be simulated."""
    t = np.linspace(0, 2, 61)
    q = np.stack([np.cos(2 * t), np.sin(3 * t)], axis=1)
    qd = np.stack([-2 * np.sin(2 * t), 3 * np.cos(3 * t)], axis=1)
    zero = np.zeros(61)
    return kt.Trajectory(DOUBLE, t, q, qd, 5 * q, zero, zero, zero, **options)


def difference(a, b):
    """How many pixels differ."""
    return int(np.sum(np.any(np.abs(a.astype(int) - b) > 25, axis=-1)))


# --- the page in one file -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "swing.html"
    viewer.save_html(swing(), path, ghost=np.array([0.5, 0.5]))
    browser.open(path.as_uri())
    browser.wait("window.kinetree")
    return browser


def drawn(page, t):
    page.run(f"kinetree.setPlaying(false); kinetree.setTime({t}); {LATER}")
    return page.screenshot()


def test_the_page_opens_from_disk_without_a_network(page):
    assert [address.split(":")[0] for address in page.requests] == ["file"]
    assert not page.errors
    assert page.run("document.title") == "double pendulum"
    image = drawn(page, 0.0).astype(int)
    assert image.std() > 5
    assert np.sum(image[..., 0] > image[..., 2] + 50) > 60  # the lower arm is orange
    assert np.sum(image[..., 2] > image[..., 0] + 50) > 60  # the upper one is blue


def test_the_page_plays_what_it_was_given(page):
    page.run("kinetree.setTime(0); kinetree.setPlaying(true)")
    page.wait("kinetree.state.t > 0.2")
    before, after = drawn(page, 0.0), drawn(page, 1.0)
    assert difference(before, after) > 400
    assert difference(before, drawn(page, 0.0)) < 40
    page.run("document.getElementById('time').value = 0.5")
    page.run("document.getElementById('time').dispatchEvent(new Event('input'))")
    assert page.run("kinetree.state.t") == pytest.approx(1.0)
    assert page.run("document.getElementById('clock').textContent") == "1.00 / 2.00 s"
    assert not page.errors


def test_layers_of_the_page_can_be_shown_and_hidden(page):
    shown = drawn(page, 0.5)
    assert page.run("kinetree.drawn.arrows") == 0
    for layer in ("forces", "velocities", "frames"):
        page.run(f"document.querySelector('[data-layer={layer}]').click(); {LATER}")
    assert page.run("kinetree.drawn.arrows") >= 4
    assert "joint moments" in page.run("document.getElementById('legend').textContent")
    assert difference(shown, page.screenshot()) > 300
    for layer in ("forces", "velocities", "frames"):
        page.run(f"document.querySelector('[data-layer={layer}]').click(); {LATER}")
    assert difference(shown, page.screenshot()) < 40


def test_dragging_turns_the_view_and_the_button_turns_it_back(page):
    before = drawn(page, 0.5)
    for kind, x in (("mousePressed", 300), ("mouseMoved", 380), ("mouseReleased", 380)):
        buttons = {"button": "left", "buttons": 1, "clickCount": 1}
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=200, **buttons)
    page.run(LATER)
    assert difference(before, page.screenshot()) > 300
    page.run(f"document.getElementById('home').click(); {LATER}")
    assert difference(before, page.screenshot()) < 40
    assert not page.errors


def test_the_page_can_be_used_with_the_keyboard_alone(page):
    before = drawn(page, 0.5)

    def press(key, **modifiers):
        page.run(
            "window.dispatchEvent(new KeyboardEvent('keydown', "
            f"{{key: '{key}', bubbles: true{', shiftKey: true' if modifiers else ''}}})); {LATER}"
        )

    for key in ("ArrowUp", "+"):
        press(key)
        assert difference(before, page.screenshot()) > 300
        press("Home")
        assert difference(before, page.screenshot()) < 40
    press("ArrowLeft", shift=True)
    assert difference(before, page.screenshot()) > 300
    press("Home")
    press(".")
    assert page.run("kinetree.state.speed") == 2
    press(",")
    assert page.run("kinetree.state.speed") == 1
    names = page.run(
        "[...document.querySelectorAll('button, input, select, summary')].map(e => e.tabIndex)"
    )
    assert all(n >= 0 for n in names)


def test_the_page_is_dark_where_the_user_wants_it_dark(page):
    bright = drawn(page, 0.5)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.call("Emulation.setEmulatedMedia", features=features)
    page.run(LATER)
    dark = page.screenshot()
    page.call("Emulation.setEmulatedMedia", features=[])
    page.run(LATER)
    assert np.mean(bright) > 200
    assert np.mean(dark) < 90
    assert np.sum(dark[..., 0].astype(int) > dark[..., 2].astype(int) + 50) > 60  # still orange
    assert difference(bright, page.screenshot()) < 40


# --- the viewer -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def live(browser):
    with kt.view(swing(), open=False, show=("bodies",), shadows=False) as shown:
        browser.open(shown.url)
        browser.wait("document.querySelector('canvas') && document.body.innerText.includes('Show')")
        until(lambda: shown.server.get_clients())
        yield shown, browser


def unfold(browser, folder):
    titles = "[...document.querySelectorAll('p,span,div')]"
    browser.run(f"{titles}.find(e => e.textContent === '{folder}').click()")


def press(browser, key, times=1):
    for _ in range(times):
        for kind in ("keyDown", "keyUp"):
            browser.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=39
            )


def quaternion_of_upper_link(shown):
    """Quaternion of the upper link at the state that is shown."""
    return shown.stage.scene(np.zeros(1), shown.q[None]).quaternions[0, 1]


def test_sliders_move_the_robot(live):
    shown, browser = live
    unfold(browser, "Joints")
    browser.wait("document.body.innerText.includes('shoulder [rad]')")
    before = shown.q.copy()
    client = next(iter(shown.server.get_clients().values()))
    first = client.get_render(210, 280, timeout=600)
    script = "[...document.querySelectorAll('[role=slider]')].at(-2).focus()"
    browser.run(script)
    press(browser, "ArrowRight", 30)
    until(lambda: shown.q[0] > before[0] + 0.2)
    until(
        lambda: shown.drawing.nodes[1].wxyz == pytest.approx(quaternion_of_upper_link(shown))
    )  # keys still arrive
    assert shown.q[1] == before[1]
    second = client.get_render(210, 280, timeout=600)
    assert first.std() > 3
    assert difference(first, second) > 40
    assert not browser.errors


def test_the_motion_plays_and_stops_in_the_browser(live):
    shown, browser = live
    click(browser, "Play")
    until(lambda: shown.player.playing and shown.player.t > 0.1)
    click(browser, "Pause")
    until(lambda: not shown.player.playing)

    def shows_its_time():  # the last picture may still be on its way: time moves with it
        motion, t = shown.motion, shown.player.t
        return np.allclose(shown.q, motion.q[np.argmin(np.abs(motion.t - t))])

    until(shows_its_time)
    assert not browser.errors


def click(browser, label):
    buttons = "[...document.querySelectorAll('button')]"
    browser.wait(f"{buttons}.some(b => b.innerText === '{label}')")
    browser.run(f"{buttons}.find(b => b.innerText === '{label}').click()")


@pytest.fixture
def downloads(live, tmp_path, monkeypatch):
    """What the browser saves, in small pictures and few."""
    shown, browser = live
    monkeypatch.setattr(controls, "_SIZE", (160, 120))
    films = {label: (end, 6, (64, 48)) for label, (end, *_) in controls._FILMS.items()}
    monkeypatch.setattr(controls, "_FILMS", films)
    shown.player.speed.value = "5"
    browser.of_browser("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    if not browser.run("document.body.innerText.includes('Picture')"):
        unfold(browser, "Save")

    def saved(label, name):
        click(browser, label)
        path = tmp_path / name
        until(lambda: browser.run("true") and path.exists())
        return path

    return saved


def test_buttons_save_what_is_seen(live, downloads):
    shown, browser = live
    text = downloads("Page", "double_pendulum.html").read_text(encoding="utf-8")
    assert "<title>double pendulum</title>" in text
    image = iio.imread(downloads("Picture", "double_pendulum.png"))
    assert image.shape == (120, 160, 3)
    assert image.std() > 3
    film = iio.imread(downloads("Film (GIF)", "double_pendulum.gif"))
    assert film.shape == (3, 48, 64, 3)
    assert difference(film[0], film[1]) > 10
    film = downloads("Film (MP4)", "double_pendulum.mp4")
    assert count_frames_and_secs(str(film)) == (3, 0.5)
    assert not shown.saving._filming
    assert not browser.errors


def test_what_cannot_be_saved_is_said_on_the_page(live, downloads, monkeypatch):
    _, browser = live

    def fail(*_):
        raise kt.KinetreeError("there is no film")

    monkeypatch.setattr(controls, "write_film", fail)
    click(browser, "Film (GIF)")
    browser.wait("document.body.innerText.includes('double_pendulum.gif is not saved')")
    assert browser.run("document.body.innerText.includes('there is no film')")


def test_the_viewer_shows_itself_in_notebooks_and_ends(live):
    shown, _ = live
    assert f'<iframe src="{shown.url}"' in shown._repr_html_()
    with kt.view("pendulum", open=False) as other:
        waiting = threading.Thread(target=other.wait)
        waiting.start()
        other.close()
        waiting.join(600)
        assert not waiting.is_alive()
    with pytest.raises(kt.errors.ViewError, match=r"port \d+ is in use, .* choose another"):
        kt.view("pendulum", open=False, port=shown.server.get_port())


# --- sliders of a page ----------------------------------------------------------------------------


def test_sliders_of_a_page_move_the_bodies_as_kinetree_does(browser, tmp_path):
    model = kt.samples.satellite()
    path = viewer.save_html(model, tmp_path / "still.html")
    browser.open(path.as_uri())
    browser.wait("window.kinetree")
    knobs = Knobs(model, 1.0)
    values = np.linspace(-0.4, 0.5, len(knobs.knobs))
    before = browser.screenshot()
    for k, value in enumerate(values):
        box = f"document.querySelectorAll('#knobs input')[{k}]"
        browser.run(f"{box}.value = {value}; {box}.dispatchEvent(new Event('input'))")
    browser.run(LATER)
    places = browser.run("kinetree.places()")
    poses = np.asarray(kt.poses(model, knobs.configuration(values)))
    for (position, (w, x, y, z)), pose in zip(places[1 : 1 + model.body_count], poses, strict=True):
        assert np.allclose(position, pose[:3, 3], atol=1e-5)
        R = rotations(np.array([w, x, y, z]))
        assert np.allclose(R, pose[:3, :3], atol=1e-5)
    assert difference(before, browser.screenshot()) > 40
    browser.run(f"document.querySelector('#knobs button').click(); {LATER}")
    assert difference(before, browser.screenshot()) < 40
    assert not browser.errors


def test_a_body_is_pulled_with_the_mouse(browser):
    world = kt.World()
    world.add_ground()
    world.add(kt.geometry.Box((0.2, 0.2, 0.2)), mass=1.0, at=(0, 0, 0.1), name="box")
    with kt.view(world, open=False, shadows=False) as shown:
        browser.open(shown.url)
        browser.wait("document.querySelector('canvas') && document.body.innerText.includes('Show')")
        until(lambda: shown.server.get_clients())
        client = next(iter(shown.server.get_clients().values()))
        assert client.get_render(60, 80, timeout=600).std() > 0
        width, height = browser.run(
            "(e => [e.clientWidth, e.clientHeight])(document.querySelector('canvas'))"
        )
        camera = client.camera
        local = rotations(np.array(camera.wxyz)).T @ (np.array([0, 0, 0.1]) - camera.position)
        x, y = local[:2] / local[2] * height / 2 / np.tan(camera.fov / 2) + [width / 2, height / 2]

        def mouse(kind, up, **buttons):
            browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y - up, **buttons)
            browser.run(LATER)

        held = {"button": "left", "buttons": 1, "clickCount": 1}
        mouse("mouseMoved", 0)
        mouse("mousePressed", 0, **held)
        for k in range(1, 13):
            mouse("mouseMoved", 10 * k, **held)
        until(lambda: shown.live.grip is not None)
        until(lambda: np.abs(shown.live.world.q - world.q).max() > 0.02)
        assert shown.live.playing
        mouse("mouseReleased", 120, **held)
        until(lambda: shown.live.grip is None)
