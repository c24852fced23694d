"""A headless Chromium, driven over a pipe; no further package is needed. None where no browser is found."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.patience import SOON

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38}
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")


def find_browser() -> str | None:
    """The browser that TOMEWISE_BROWSER names, or an installed one."""
    return os.environ.get("TOMEWISE_BROWSER") or next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """One page in a browser process of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        from_us, self._out = os.pipe()
        self._in, from_it = os.pipe()
        # A browser reads commands from descriptor 3 and writes to 4; the shell puts ours there.
        command = f'exec "$0" "$@" 3<&{from_us} 4>&{from_it}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *_OPTIONS, f"--user-data-dir={folder}"],
            pass_fds=(from_us, from_it),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(from_it)
        self._number, self._rest, self._session = 0, b"", ""
        self.complaints: list[str] = []  # what the console says
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.requests: list[str] = []

    def open(self, file: Path, width: int = 1280, height: int = 800, scheme: str = "light") -> None:
        """Open a file, and wait until its picture is drawn."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.complaints.clear()
        self.requests.clear()
        self._call("Page.navigate", url=file.as_uri())
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            if self.run("document.readyState === 'complete' && !!document.querySelector('.tp-tools')"):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{file} was not drawn: {self.complaints}")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        for kind, more in (("keyDown", text), ("keyUp", {})):
            self._call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS.get(key, 0), **more
            )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._out, json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode())
        os.write(self._out, b"\0")
        while True:
            reply = self._read()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply["error"]
                return reply["result"]
            if reply.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                self.complaints.append(json.dumps(reply["params"])[:500])
            if reply.get("method") == "Network.requestWillBeSent":
                self.requests.append(reply["params"]["request"]["url"])

    def _read(self) -> Any:
        while b"\0" not in self._rest:
            if not (part := os.read(self._in, 1 << 20)):
                raise EOFError("the browser ended")
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)
