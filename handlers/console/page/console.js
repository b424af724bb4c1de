// Live rows, pause and shortcuts: all else is made by the server. Text is set as text, never as
// markup.
"use strict";

const shortcutsKey = "trunkline-console-shortcuts";
const maxWaiting = 256; // rows kept while the page is paused; older ones are dropped

// remembered returns what this browser keeps, which it may not be allowed to.
function remembered() {
  try { return localStorage.getItem(shortcutsKey); } catch { return null; }
}

function remember(value) {
  try { localStorage.setItem(shortcutsKey, value); } catch { /* the choice is for this page only */ }
}

function cell(tag, text, code) {
  const element = document.createElement(tag);
  if (tag === "th") element.scope = "row";
  let inner = element;
  if (code) {
    element.className = "text";
    inner = element.appendChild(document.createElement("code"));
  }
  inner.textContent = text;
  return element;
}

function eventRow(event) {
  const row = document.createElement("tr");
  const when = document.createElement("td");
  const time = when.appendChild(document.createElement("time"));
  time.dateTime = time.title = event.at;
  time.textContent = event.clock;
  row.append(when, cell("th", event.type), cell("td", event.source), cell("td", event.payload, true));
  return row;
}

function messageRow(message) {
  const row = document.createElement("tr");
  const seq = cell("th", String(message.seq));
  seq.className = "n";
  const when = document.createElement("td");
  const time = when.appendChild(document.createElement("time"));
  time.dateTime = time.title = time.textContent = message.created_at;
  const text = cell("td", message.body);
  text.className = "text";
  if (message.metadata) {
    text.appendChild(document.createElement("br"));
    text.appendChild(document.createElement("code")).textContent = JSON.stringify(message.metadata);
  }
  row.append(seq, when, cell("td", message.kind), cell("td", message.sender_agent_id), text);
  return row;
}

function gapRow(event) {
  const row = document.createElement("tr");
  row.className = "gap";
  const text = cell("td", event.gap);
  text.colSpan = 4;
  row.append(text);
  return row;
}

// marked returns what shows that a value is bad: the frame of a fact, or the cell itself.
function marked(id) {
  return document.getElementById(`fact-${id}`)?.parentElement ?? document.getElementById(id);
}

function follow(place) {
  const state = document.getElementById("live-state");
  const button = document.querySelector("[data-pause]");
  const max = Number(place.dataset.max) || 0;
  let paused = false, waiting = [], values = null, dropped = 0;

  const show = () => { state.textContent = paused ? `Paused${waiting.length ? `, ${waiting.length} new` : ""}.` : "Live."; };
  const addRows = (rows) => {
    const end = place.dataset.end;
    for (const row of rows) end ? place.append(row) : place.prepend(row);
    while (max && place.rows.length > max) (end ? place.firstElementChild : place.lastElementChild).remove();
  };
  const setValues = (texts) => {
    for (const [id, text] of Object.entries(texts)) {
      const element = document.getElementById(id);
      if (element) element.textContent = text;
      if (id.startsWith("bad-")) marked(id.slice(4))?.classList.toggle("bad", text !== "");
    }
  };
  const take = (row) => {
    if (!paused) {
      addRows([row]);
      return;
    }
    waiting.push(row);
    if (waiting.length > maxWaiting) {
      waiting.shift();
      dropped++;
    }
    show();
  };

  const source = new EventSource(place.dataset.live);
  source.addEventListener("row", (e) => take(eventRow(JSON.parse(e.data))));
  source.addEventListener("message", (e) => { if (e.data) take(messageRow(JSON.parse(e.data))); });
  source.addEventListener("gap", (e) => take(gapRow(JSON.parse(e.data))));
  source.addEventListener("values", (e) => {
    const texts = JSON.parse(e.data);
    if (paused) values = Object.assign(values || {}, texts);
    else setValues(texts);
  });
  source.addEventListener("open", show);
  source.addEventListener("error", () => {
    state.textContent = source.readyState === EventSource.CLOSED ? "Not live: the server refused; reload the page." : "Not live: connecting again…";
  });
  addEventListener("pagehide", () => source.close());

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Resume" : "Pause";
    if (!paused) {
      if (dropped) addRows([gapRow({ gap: `${dropped} events are not shown: they came while the page was paused` })]);
      addRows(waiting);
      if (values) setValues(values);
      waiting = [];
      values = null;
      dropped = 0;
    }
    show();
  });
}

function shortcuts() {
  let first = "", since = 0;
  const step = (by) => {
    const rows = Array.from(document.querySelectorAll("[data-row]"));
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
    if (next) next.focus();
  };
  const single = {
    "/": () => document.querySelector("[data-focus]")?.focus(),
    "?": () => location.assign("/console/help"),
    j: () => step(1),
    k: () => step(-1),
    p: () => document.querySelector("[data-pause]:not([hidden])")?.click(),
    r: () => location.reload(),
  };
  addEventListener("keydown", (e) => {
    const field = e.target instanceof Element && e.target.closest("input, select, textarea");
    if (field && e.key === "Escape") field.blur();
    if (field || e.ctrlKey || e.metaKey || e.altKey || remembered() === "off") return;
    let act = single[e.key];
    if (first === "g" && e.timeStamp - since < 2000) {
      const link = document.querySelector(`nav a[data-key="${CSS.escape(e.key)}"]`);
      act = link && (() => link.click());
    }
    first = first === "g" ? "" : e.key;
    since = e.timeStamp;
    if (act) {
      e.preventDefault();
      act();
    }
  });
  const choice = document.getElementById("keys-on");
  if (!choice) return;
  choice.checked = remembered() !== "off";
  choice.addEventListener("change", () => remember(choice.checked ? "on" : "off"));
}

for (const place of document.querySelectorAll("[data-live]")) follow(place);
shortcuts();
