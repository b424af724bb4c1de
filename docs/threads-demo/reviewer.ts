// The reviewer of a change: reports findings, verifies their fixes, and resolves the thread when the
// tests have passed. It is JavaScript, too, so that any node runs it.
import { readFileSync } from "node:fs";

const { THREADS_URL, THREADS_TOKEN_FILE, THREAD } = process.env;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// call calls a method until the server answers.
async function call(method, params) {
  for (;;) {
    try {
      const answer = await fetch(`${THREADS_URL}/v1/${method}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${readFileSync(THREADS_TOKEN_FILE, "utf8").trim()}`, "Content-Type": "application/json" },
        body: JSON.stringify({ thread_id: THREAD, ...params }),
      });
      const body = await answer.json();
      if (answer.ok) return body;
      if (answer.status < 500) throw Object.assign(new Error(body.error.message), { refused: true });
    } catch (e) {
      if (e.refused) throw e;
    }
    await pause(200);
  }
}

const post = (key, body, metadata) =>
  call("post_message", { schema_version: 1, kind: "event", body, metadata, idempotency_key: `reviewer-${key}` });

const findings = { F1: "Null fallback missing", F2: "Locale fallback fails", F3: "No test for an empty list" };
const verified = new Set();
let since = 0, tested = false;
while (verified.size < 3 || !tested) {
  const page = await call("read_messages", { since_seq: since, wait_ms: 1000 });
  since = page.next_seq;
  for (const { metadata } of page.messages) {
    switch (metadata?.event_type) {
      case "change_ready":
        for (const [id, text] of Object.entries(findings)) {
          await pause(600); // the work
          await post(id, text, { event_type: "finding_reported", finding_id: id, severity: "high", file: "mapper.dart" });
        }
        break;
      case "fix_pushed":
        await post(`verified-${metadata.finding_id}`, `Verified ${metadata.finding_id}`, { event_type: "finding_verified", finding_id: metadata.finding_id });
        verified.add(metadata.finding_id);
        break;
      case "tests_passed":
        tested = true;
    }
  }
}
await call("update_thread_status", { status: "resolved", reason: "all findings are fixed and the tests pass" });
