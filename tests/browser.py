"""A page opened in a real headless Chromium, driven over its debugging port."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

#: The widths of windows in which a page has to look well, from a phone's to a wide screen's.
WIDTHS = (390, 768, 1280, 1900)

#: What sticks out of the window, but for what lies in a box that scrolls.
OVERFLOW = """
(() => {
  const out = [...document.querySelectorAll("body *")].filter((one) => !one.closest(".wide > *"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 120));
  if (document.documentElement.scrollWidth > innerWidth) out.push("the page scrolls sideways");
  return out;
})()
"""


class Page:
    """Opens `url`; `evaluate` runs a script in it, `requests` are the addresses that it asked for, `logged` its messages."""

    def __init__(self, url, profile):
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        self.process = subprocess.Popen(
            [*command, "--no-first-run", f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.loop = asyncio.new_event_loop()
        self.requests, self.logged, self.count = [], [], 0
        port_file, until = Path(profile, "DevToolsActivePort"), time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().count("\n")):
            assert time.monotonic() < until, "the browser did not start"
            time.sleep(0.05)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            target = next(one for one in json.load(answer) if one["type"] == "page")
        from tornado.websocket import websocket_connect

        async def connect():
            return await websocket_connect(target["webSocketDebuggerUrl"], max_message_size=1 << 26)

        self.socket = self.loop.run_until_complete(connect())
        for domain in ("Network", "Page", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        while self.evaluate("document.readyState + location.href") != "complete" + url:
            time.sleep(0.05)

    def call(self, method, **params):
        self.count += 1

        async def ask():
            await self.socket.write_message(json.dumps({"id": self.count, "method": method, "params": params}))
            while True:
                message = json.loads(await self.socket.read_message())
                if message.get("id") == self.count:
                    return message
                if message.get("method") == "Network.requestWillBeSent":
                    self.requests.append(message["params"]["request"]["url"])
                elif message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                    self.logged.append(message["params"])

        answer = self.loop.run_until_complete(asyncio.wait_for(ask(), 30))
        assert "error" not in answer, answer
        return answer["result"]

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, width, scheme):
        """Make the window so wide, and its colours "light" or "dark"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close(self):
        self.socket.close()
        self.loop.run_until_complete(asyncio.sleep(0.1))
        self.loop.close()
        self.process.kill()
        self.process.wait()
