"""A page opened in a real headless Chromium, driven over its debugging port."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

#: The widths of windows in which a page has to look well, from a phone's to a wide screen's.
WIDTHS = (390, 768, 1280, 1900)
#: Colours move nothing, so that one width is enough for dark pages.
LOOKS = [*((width, "light") for width in WIDTHS), (WIDTHS[0], "dark")]

#: Where pictures of pages and what axe finds are kept; CI keeps the folder.
KEPT = Path(__file__).resolve().parent.parent / "build" / "pages"

#: An answer that takes more seconds will not come; axe takes a while on a busy machine.
_HANGS = 180

#: Pictures end at this height, in pixels of the page.
_TALLEST = 12_000

#: What sticks out of the window, but for what lies in a box that scrolls, as tables and the navigation do.
OVERFLOW = """
(() => {
  const out = [...document.querySelectorAll("body *")].filter((one) => !one.closest(".wide > *, nav > *"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 120));
  if (document.documentElement.scrollWidth > innerWidth) out.push("the page scrolls sideways");
  return out;
})()
"""

#: Lays out what is not in sight, which browsers leave until it is scrolled to.
WHOLE = """
{
  const style = document.createElement("style");
  style.id = "whole";
  style.textContent = "section { content-visibility: visible !important }";
  document.head.append(style);
}
"""

#: What axe finds. Rows of a table are alike, so that it looks at the first ones of each; and it takes no colour for
#: readable that stands on a gradient, so that the shadows of boxes that scroll are left out meanwhile.
_BARRIERS = """
(async () => {
  const style = document.createElement("style");
  style.textContent = "tbody tr:nth-child(n + 4), path.thin:nth-of-type(n + 6) { display: none }" +
    ".wide { background: none !important }";
  document.head.append(style);
  const found = await axe.run(WHERE, {resultTypes: ["violations", "incomplete"]});
  style.remove();
  const brief = (one) => ({...one, nodes: one.nodes.slice(0, 20).map(({html, failureSummary}) => ({html, failureSummary})),
    count: one.nodes.length});
  return {engine: found.testEngine, violations: found.violations.map(brief), incomplete: found.incomplete.map(brief)};
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

        answer = self.loop.run_until_complete(asyncio.wait_for(ask(), _HANGS))
        assert "error" not in answer, answer
        return answer["result"]

    def evaluate(self, script):
        """Return what a script gives, or what its promise becomes."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, width, scheme):
        """Make the window so wide, and its colours "light" or "dark"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def keep(self, name):
        """Keep a picture of the whole page in `KEPT`, for people to look at."""
        self.evaluate(WHOLE)
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], _TALLEST), "scale": 0.5}
        taken = self.call("Page.captureScreenshot", format="webp", quality=60, captureBeyondViewport=True, clip=clip)
        KEPT.mkdir(parents=True, exist_ok=True)
        self.evaluate("document.getElementById('whole').remove()")
        (KEPT / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))

    def barriers(self, name, where="document"):
        """Return what axe finds, in a line each; what it is not sure of is kept in `KEPT` too."""
        from importlib import resources

        if self.evaluate("typeof axe") == "undefined":
            self.evaluate((resources.files("axe_core_python") / "axe.min.js").read_text("utf-8"))
        found = self.evaluate(_BARRIERS.replace("WHERE", where))
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{name}.axe.json").write_text(json.dumps(found, indent=1), "utf-8")
        return [
            f"{one['id']} ({one['impact']}): {one['help']}: {node['html'][:160]}"
            for one in found["violations"]
            for node in one["nodes"][:5]
        ]

    def close(self):
        self.socket.close()
        self.loop.run_until_complete(asyncio.sleep(0.1))
        self.loop.close()
        self.process.kill()
        self.process.wait()
