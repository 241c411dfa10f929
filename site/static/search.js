// Searches all pages. The index is a script, because a page that was opened from a folder may not fetch files.
"use strict";

const query = document.getElementById("query");
const found = document.getElementById("found");
const count = document.getElementById("count");
const home = document.getElementById("home").href.replace(/index\.html$/, "");
let pages; // undefined until the index has been loaded

// On a narrow screen the menu begins closed.
if (matchMedia("(max-width: 48rem)").matches) document.querySelector(".menu details").open = false;

window.searchIndexLoaded = (index) => { pages = index; show(); };

function loadIndex() {
  if (document.getElementById("index")) return;
  const script = document.createElement("script");
  script.id = "index";
  script.src = home + "search-index.js";
  document.head.append(script);
}

// matches returns the best pages and headings that have all words. A word in a title counts most, then one in a
// heading, then one in the text; decisions count less than guides.
function matches(words) {
  const all = [];
  for (const page of pages) {
    const title = page.title.toLowerCase(), text = page.text.toLowerCase();
    const headings = page.headings.filter((h) => words.every((w) => h.text.toLowerCase().includes(w)));
    let score = 0;
    for (const w of words) {
      if (title.includes(w)) score += 30;
      else if (text.includes(w)) score += 1 + Math.min(9, text.split(w).length - 1);
      else { score = -1; break; }
    }
    if (score < 0 && headings.length === 0) continue;
    if (headings.length > 0) score += 20;
    if (page.url.includes("/adr/")) score /= 4;
    all.push({page, score, heading: headings[0], at: text.indexOf(words[0])});
  }
  return all.sort((a, b) => b.score - a.score).slice(0, 12);
}

function show() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 || !pages) {
    found.hidden = true;
    count.textContent = "";
    return;
  }
  const best = matches(words);
  found.replaceChildren(...best.map(({page, heading, at}) => {
    const link = document.createElement("a");
    link.href = home + page.url + (heading ? "#" + heading.id : "");
    link.textContent = page.title + (heading ? " › " + heading.text : "");
    const excerpt = document.createElement("small");
    excerpt.textContent = at < 0 ? "" : "…" + page.text.slice(Math.max(0, at - 40), at + 90).trim() + "…";
    link.append(excerpt);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (best.length === 0) {
    const none = document.createElement("li");
    none.textContent = "No page has all of these words.";
    found.append(none);
  }
  count.textContent = best.length + " found";
  found.hidden = false;
}

query.addEventListener("focus", loadIndex);
query.addEventListener("input", () => { loadIndex(); show(); });
document.getElementById("search").addEventListener("submit", (e) => {
  e.preventDefault();
  const first = found.querySelector("a");
  if (first) location.href = first.href;
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && document.activeElement !== query) { e.preventDefault(); query.focus(); }
  if (e.key === "Escape") { query.value = ""; show(); }
});
