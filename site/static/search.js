// Searches all pages. The index is a script, because a page that was opened from a folder may not fetch files.
"use strict";

const query = document.getElementById("query");
const found = document.getElementById("found");
const count = document.getElementById("count");
const home = document.getElementById("home").href.replace(/index\.html$/, "");
let sections; // undefined until the index has been loaded

// On a narrow screen the menu begins closed.
if (matchMedia("(max-width: 48rem)").matches) document.querySelector(".menu details").open = false;

window.searchIndexLoaded = (index) => { sections = sectionsOf(index); show(); };

function loadIndex() {
  if (document.getElementById("index")) return;
  const script = document.createElement("script");
  script.id = "index";
  script.src = home + "search-index.js";
  document.head.append(script);
}

// sectionsOf returns the sections of all pages, with their words.
function sectionsOf(pages) {
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  return pages.flatMap((page) => page.sections.map((s) => ({page, ...s,
    titleWords: words(page.title), headingWords: words(s.heading), textWords: words(s.text)})));
}

// rank is lower for pages that few readers look for: reasons, tests, changes.
const rank = (url) => /\/adr\//.test(url) ? 0.3
  : /proof|docs\/curator|questions|CHANGELOG|CONTRIBUTING|architecture|releasing/.test(url) ? 0.4
  : /guarantees|reference\/commands/.test(url) ? 0.7 : 1;

// same reports whether a word of a page is a word of the query, another form of it (lock, locked), or has it within
// (WithReentry).
const same = (word, wanted) => word.startsWith(wanted) || wanted.length > 4 && word.includes(wanted)
  || word.length > 3 && wanted.startsWith(word) && /^(s|es|d|ed|r|er|ing)$/.test(wanted.slice(word.length));

// matches returns the best section of each page that has the rarest words. Sections need not have all words, but
// those that have more of them come first. A word in a heading or a title counts more than one in the text.
function matches(wanted) {
  const scores = sections.map(() => 0), had = sections.map(() => 0);
  let all = 0;
  for (const w of wanted) {
    const found = sections.map((s) => {
      const count = (words) => words.reduce((n, word) => n + same(word, w), 0);
      const inText = count(s.textWords);
      return 2 * (count(s.headingWords) > 0) + (count(s.titleWords) > 0) + inText / (inText + 1 + s.textWords.length / 150);
    });
    const rarity = Math.log(1 + sections.length / (1 + found.filter((f) => f > 0).length));
    all += rarity;
    found.forEach((f, i) => { if (f > 0) { scores[i] += f * rarity; had[i] += rarity; } });
  }
  const best = new Map();
  sections.forEach((section, i) => {
    const score = scores[i] * (had[i] / all) ** 2 * rank(section.page.url);
    if (score > 0 && score > (best.get(section.page)?.score || 0)) best.set(section.page, {section, score});
  });
  return [...best.values()].sort((a, b) => b.score - a.score).slice(0, 12);
}

function show() {
  const words = query.value.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  if (words.length === 0 || !sections) {
    found.hidden = true;
    count.textContent = "";
    return;
  }
  const best = matches(words);
  found.replaceChildren(...best.map(({section}) => {
    const {page, id, heading, text} = section;
    const at = Math.max(0, ...words.map((w) => text.toLowerCase().indexOf(w)));
    const link = document.createElement("a");
    link.href = home + page.url + (id ? "#" + id : "");
    link.textContent = page.title + (heading ? " › " + heading : "");
    const excerpt = document.createElement("small");
    excerpt.textContent = "…" + text.slice(Math.max(0, at - 40), at + 90).trim() + "…";
    link.append(excerpt);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  if (best.length === 0) {
    const none = document.createElement("li");
    none.textContent = "No page has any of these words.";
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
