// Keeps an open page up to date: parts that have changed come as server-sent events. Without this script pages work
// the same, by reloading.
"use strict";

// replace puts a part's new HTML in place of the old, and keeps the focus if the same element is still there.
function replace(id, html) {
  const old = document.getElementById(id);
  if (!old) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const key = focused && (focused.id ? "#" + CSS.escape(focused.id) : focused.getAttribute("href") && `[href="${CSS.escape(focused.getAttribute("href"))}"]`);
  const template = document.createElement("template");
  template.innerHTML = html;
  const next = template.content.firstElementChild;
  if (!next) return;
  old.replaceWith(next);
  if (key) next.querySelector(key)?.focus({preventScroll: true});
}

function formatAge(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

// countAges keeps ages right between scans.
function countAges() {
  for (const e of document.querySelectorAll("time.age")) {
    const at = Date.parse(e.dateTime);
    const ahead = at > Date.now();
    e.textContent = ahead ? "in " + formatAge((at - Date.now()) / 1000) : formatAge((Date.now() - at) / 1000);
  }
}

let verdict = document.querySelector("#f-verdict h1")?.textContent;

function follow() {
  const stream = new EventSource(document.body.dataset.events);
  stream.onmessage = (event) => {
    for (const part of JSON.parse(event.data)) {
      replace(part.id, part.html);
    }
    document.querySelector(".page").classList.toggle("stale", !!document.querySelector("#f-live .banner.bad"));
    const said = document.querySelector("#f-verdict h1")?.textContent;
    if (said !== verdict) {
      verdict = said;
      document.getElementById("said").textContent = said ?? "";
    }
    countAges();
  };
  // A stream that ends is opened again by the browser; one that is refused is not.
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

if (document.querySelector("[id^='f-']:not(#f-live):not(#f-nav)")) follow();
setInterval(countAges, 1000);
