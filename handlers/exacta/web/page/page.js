"use strict";
// Shows what a project is about to do and does. It cannot change anything: the connection admits
// subscribe and ack only. All text comes from outside and becomes text nodes, never markup.
(() => {
  const shownEvents = 200;        // rows of the list of events
  const shownDiffs = 64;          // diffs that are kept
  const windowSize = 256, ackEvery = 64; // events that are under way
  const waitMin = 250, waitMax = 8000, pollEvery = 2000; // milliseconds

  const el = (id) => document.getElementById(id);
  // visible writes controls, what turns the direction of writing and what has no width as escapes.
  const visible = (text) => text.replace(/[^\P{C}\t\n]|[\p{Zl}\p{Zp}]/gu,
    (c) => "\\u" + (c.codePointAt(0) > 0xffff ? "{" + c.codePointAt(0).toString(16) + "}" : c.codePointAt(0).toString(16).padStart(4, "0")));
  const put = (e, text) => { e.textContent = visible(text); };
  const make = (tag, text, cls) => {
    const e = document.createElement(tag);
    put(e, text);
    if (cls) e.className = cls;
    return e;
  };
  const uuid = () => { // crypto.randomUUID is for https and this machine only
    const b = crypto.getRandomValues(new Uint8Array(16));
    b[6] = b[6] & 15 | 64;
    b[8] = b[8] & 63 | 128;
    const h = Array.from(b, (x) => x.toString(16).padStart(2, "0")).join("");
    return [h.slice(0, 8), h.slice(8, 12), h.slice(12, 16), h.slice(16, 20), h.slice(20)].join("-");
  };

  let socket = null;
  let wait = waitMin;
  let projects = [];
  let view = null;      // of the project that is shown
  let asked = null;     // the subscribe without an answer: {id, view}
  let connected = 0;
  const dirty = new Set();

  const newView = (id, root, state) => ({
    id, root, state,
    last: null,         // stream_seq of the last event; null: none was asked for
    polled: null,       // last, when the list of projects came
    session: null, live: false, plan: null, planned: null, diffs: new Map(), steps: new Map(), bar: null, error: null, events: [], older: false,
  });

  // --- the connection

  const send = (message) => socket.send(JSON.stringify({ipc_version: "1.0", ...message}));

  const connect = () => {
    const to = new URL("ws", location.href);
    to.protocol = to.protocol.replace("http", "ws");
    to.hash = "";
    socket = new WebSocket(to, ["exacta.ipc.v1"]);
    socket.onopen = () => {
      wait = waitMin;
      document.body.dataset.connections = String(++connected);
      say("connected");
      asked = null;
      follow();
    };
    socket.onmessage = (m) => receive(JSON.parse(m.data));
    socket.onclose = () => {
      socket = null;
      if (view) view.live = false;
      say("connection lost, trying again");
      setTimeout(connect, wait);
      wait = Math.min(2 * wait, waitMax);
    };
  };

  const say = (text) => { el("link").textContent = text; };

  // follow subscribes behind the last event that was seen.
  const follow = () => {
    if (!view || view.live || asked || !socket || socket.readyState !== WebSocket.OPEN) return;
    const project = projects.find((p) => p.project_id === view.id);
    if (!project) return;
    if (view.last === null) {
      view.last = project.oldest_stream_seq - 1;
      view.older = view.last > 0;
    }
    asked = {id: uuid(), view};
    const message = {type: "subscribe", request_id: asked.id, sent_at: new Date().toISOString(), project_id: view.id,
      after_stream_seq: view.last, window: windowSize};
    if (view.session) message.session_id = view.session;
    send(message);
  };

  const leave = (id) => {
    if (socket && socket.readyState === WebSocket.OPEN) {
      send({type: "subscribe", request_id: uuid(), sent_at: new Date().toISOString(), project_id: id, mode: "none"});
    }
  };

  const receive = (m) => {
    if (m.type === "ack") subscribed(m);
    else if (m.type === "event") event(m);
  };

  const subscribed = (m) => {
    if (!asked || m.request_id !== asked.id) return;
    const of = asked.view;
    asked = null;
    if (of !== view) { // another one was chosen meanwhile
      if (m.ok && !(view && view.id === of.id)) leave(of.id);
      follow();
      return;
    }
    if (!m.ok) { // the server or the project was started again, or events are gone
      restart();
      return;
    }
    view.live = true;
    view.session = m.result.session_id;
    if (m.result.replayed === 0) view.state = m.result.state;
    paint("state");
  };

  // restart shows the project from the oldest event that is there.
  const restart = () => {
    view = newView(view.id, view.root, view.state);
    paint("all");
    setTimeout(poll, waitMin);
  };

  const event = (m) => {
    if (!view || m.project_id !== view.id || !view.live || m.stream_seq <= view.last) return;
    if (m.stream_seq !== view.last + 1) { // a gap: it must not look like the whole
      document.body.dataset.gaps = String(Number(document.body.dataset.gaps || 0) + 1);
      leave(view.id);
      restart();
      return;
    }
    view.last = m.stream_seq;
    if (view.last % ackEvery === 0) send({type: "ack", project_id: view.id, stream_seq: view.last});
    view.events.push(m);
    if (view.events.length > shownEvents) view.events.shift();
    paint("events");
    const take = takes[m.event];
    if (take) take(m.payload, m);
  };

  const takes = {
    StateChanged(p) { view.state = p.to; paint("state"); paint("plan"); },
    PlanProposed(p, m) {
      view.plan = p.plan;
      view.planned = m.sent_at;
      view.diffs = new Map();
      view.steps = new Map();
      view.bar = view.error = null;
      paint("plan");
      paint("diffs");
      paint("state");
    },
    DiffProposed(p) {
      if (view.diffs.get(p.step_id) === p.diff) return; // of the execution, after that of the plan
      view.diffs.set(p.step_id, p.diff);
      if (view.diffs.size > shownDiffs) view.diffs.delete(view.diffs.keys().next().value);
      paint("diffs");
    },
    StepStarted(p) { view.steps.set(p.step_id, "running"); paint("plan"); },
    StepCompleted(p) { view.steps.set(p.step_id, (p.ok ? "done" : "failed") + " in " + p.duration_ms + " ms"); paint("plan"); },
    Progress(p) { view.bar = p; paint("state"); },
    ErrorRaised(p) { view.error = p.error; paint("state"); },
  };

  // --- the list of projects

  const poll = async () => {
    try {
      const answer = await fetch("projects", {cache: "no-store"});
      if (answer.status === 401) location.reload(); // leads to the login
      if (!answer.ok) throw new Error(String(answer.status));
      projects = (await answer.json()).projects;
    } catch {
      return;
    }
    choose();
    paint("projects");
    follow();
  };

  const choose = () => {
    const wanted = projects.find((p) => p.project_id === location.hash.slice(1));
    if (wanted ? !view || view.id !== wanted.project_id : !view && projects.length > 0) {
      const next = wanted || projects[0];
      if (view && view.live) leave(view.id);
      view = newView(next.project_id, next.project_root, next.state);
      paint("all");
      return;
    }
    if (!view) return;
    const same = projects.find((p) => p.project_id === view.id);
    if (!same) { // it was closed; what was shown stays
      view.live = false;
      view.state = "closed";
      paint("state");
    } else if (view.live && same.last_stream_seq > view.last && view.polled === view.last) {
      view.live = false; // it was closed and opened again: nothing comes any more
    }
    view.polled = view.last;
  };

  // --- painting, once a frame

  const paint = (part) => {
    if (dirty.size === 0) requestAnimationFrame(draw);
    dirty.add(part);
  };

  const draw = () => {
    const all = dirty.has("all");
    for (const [part, f] of Object.entries(parts)) if (all || dirty.has(part)) f();
    dirty.clear();
  };

  const parts = {
    projects() {
      el("none").hidden = projects.length > 0;
      const rows = projects.map((p) => {
        const a = make("a", p.project_root);
        a.href = "#" + p.project_id;
        if (view && p.project_id === view.id) a.setAttribute("aria-current", "page");
        const li = document.createElement("li");
        li.append(a);
        return li;
      });
      const focus = document.activeElement && document.activeElement.hash;
      el("projects").replaceChildren(...rows);
      for (const a of el("projects").querySelectorAll("a")) if (focus && a.hash === focus) a.focus();
    },
    state() {
      if (!view) return;
      put(el("root"), view.root);
      put(el("state"), view.state);
      const p = view.bar;
      el("bar").max = p && p.total || 1;
      el("bar").value = p ? p.current : 0;
      put(el("phase"), p ? p.phase + " " + p.current + "/" + p.total : "–");
      el("error").hidden = !view.error;
      put(el("error"), view.error ? view.error.code + ": " + view.error.message + " " + view.error.technical_detail : "");
    },
    plan() {
      const plan = view && view.plan;
      put(el("about"), plan ? "Version " + plan.version + ", " + plan.steps.length + " steps, about " + plan.estimated_tokens + " tokens; " + plan.id + ", made at " + view.planned +
        plan.constraints.map((c) => "; " + c.type + " " + c.description + " (" + c.scope + ")").join("") : "There is no plan.");
      el("next").hidden = !plan || view.state !== "AwaitingApproval";
      if (plan) put(el("next"), "Approve it with: trunkline exacta approve " + plan.id.slice(0, 8) + " --project '" + view.root.replaceAll("'", "'\\''") + "'");
      el("steps").replaceChildren(...(plan ? plan.steps : []).map((s) => {
        const tr = document.createElement("tr");
        const result = view.steps.get(s.id) || "";
        tr.append(make("td", String(s.order)), make("td", s.type), make("td", s.target), make("td", s.description),
          make("td", result, result.startsWith("failed") ? "bad" : ""));
        return tr;
      }));
    },
    diffs() {
      if (!view) return;
      const names = new Map((view.plan ? view.plan.steps : []).map((s) => [s.id, s.order + ". " + s.target]));
      el("diffs").replaceChildren(...Array.from(view.diffs, ([step, diff]) => {
        const box = document.createElement("details");
        box.open = true;
        const pre = document.createElement("pre");
        pre.tabIndex = 0;
        pre.append(...diff.split("\n").slice(0, -1).map(line));
        box.append(make("summary", names.get(step) || step), pre);
        return box;
      }));
    },
    events() {
      if (!view) return;
      el("last").textContent = String(view.last || 0);
      el("older").hidden = !view.older;
      const log = el("events").parentElement;
      const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
      el("events").replaceChildren(...view.events.map((m) => {
        const li = make("li", m.stream_seq + " " + m.sent_at.slice(11, 19) + " " + m.event + " " + about(m), m.event === "ErrorRaised" ? "bad" : "");
        li.title = m.sent_at;
        li.dataset.seq = String(m.stream_seq);
        return li;
      }));
      if (atEnd) log.scrollTop = log.scrollHeight;
    },
  };

  const line = (text, i) => {
    const kinds = {"@": "hunk", "+": "add", "-": "del"};
    return make("span", text, i < 2 ? "head" : kinds[text[0]]);
  };

  // about is one line about an event.
  const about = (m) => {
    const p = m.payload;
    switch (m.event) {
      case "StateChanged": return p.from + " → " + p.to + " (" + p.trigger + ")";
      case "PlanProposed": return "version " + p.plan.version + ", " + p.plan.steps.length + " steps";
      case "DiffProposed": return p.diff.split("\n", 2).join(" ");
      case "StepStarted": return p.order + " " + p.description;
      case "StepCompleted": return (p.ok ? "ok" : "failed") + " in " + p.duration_ms + " ms";
      case "Progress": return p.phase + " " + p.current + "/" + p.total;
      case "LogEntry": return p.level + " " + p.component + ": " + p.message;
      case "ErrorRaised": return p.error.code + ": " + p.error.message;
      default: return "";
    }
  };

  addEventListener("hashchange", () => { choose(); paint("projects"); follow(); });
  el("skip").addEventListener("click", (e) => { e.preventDefault(); el("plan").focus(); });
  setInterval(() => { if (!document.hidden) poll(); }, pollEvery);
  connect();
  poll();
})();
