"""A headless Chromium, driven over its DevTools protocol."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
from inspect import signature
from io import BytesIO
from pathlib import Path

import numpy as np
from websockets.sync.client import connect

LONG = 600  # [s] that a busy machine may take for anything
_PATIENT = {"ping_interval": None} if "ping_interval" in signature(connect).parameters else {}
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Browser:
    """One browser process with one page.

    Attributes:
        errors: what the page complained about since it was opened.
        requests: addresses that it requested.
    """

    def __init__(self, *arguments, size=(900, 640)):
        program = next((found for name in NAMES if (found := shutil.which(name))), None)
        assert program, "no Chromium here: make chromium installs it"
        self._folder = tempfile.TemporaryDirectory(prefix="chromium", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--use-gl=angle",
                "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-extensions",
                "--disable-component-update", "--disable-features=BackForwardCache",
                "--hide-scrollbars", "--remote-debugging-port=0",
                f"--user-data-dir={self._folder.name}", f"--window-size={size[0]},{size[1]}",
                *arguments, "about:blank",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.errors, self.requests, self._count = [], [], 0
        options: dict = {"max_size": None, "compression": None, "open_timeout": LONG, **_PATIENT}
        self._socket = connect(self._address(), **options)
        target = self.of_browser("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in target if t["type"] == "page")
        self._session = self.of_browser("Target.attachToTarget", targetId=page, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def _address(self):
        port = Path(self._folder.name) / "DevToolsActivePort"
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            if port.exists() and len(lines := port.read_text().split()) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            assert self._process.poll() is None, "Chromium did not start"
            time.sleep(0.05)
        raise AssertionError(f"Chromium did not open its port within {LONG} s")

    def of_browser(self, method, **parameters):
        """A command of the protocol, for the browser as a whole."""
        return self._send({"method": method, "params": parameters})

    def call(self, method, **parameters):
        """A command of the protocol, for the page."""
        return self._send({"method": method, "params": parameters, "sessionId": self._session})

    def _send(self, message, timeout=LONG):
        self._count += 1
        self._socket.send(json.dumps({**message, "id": self._count}))
        until = time.monotonic() + timeout
        while True:
            answer = json.loads(self._socket.recv(timeout=max(until - time.monotonic(), 0.01)))
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _note(self, event):
        parameters, method = event.get("params", {}), event.get("method")
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(str([a.get("value") or a for a in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(str(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, address):
        """Go to an address, and forget what was before."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def run(self, script):
        """The value of an expression on the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition, seconds=LONG):
        """Until an expression on the page is true."""
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < until, f"{condition} did not come true; {self.errors}"
            time.sleep(0.03)

    def screenshot(self, path=None, **options):
        """What the page looks like, (rows, columns, 3) of bytes; also as a file, if requested."""
        from PIL import Image

        data = base64.b64decode(self.call("Page.captureScreenshot", **options)["data"])
        if path is not None:
            Path(path).write_bytes(data)
        return np.asarray(Image.open(BytesIO(data)).convert("RGB"))

    def close(self):
        """End the process and remove what it left."""
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()
