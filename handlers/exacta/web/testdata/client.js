"use strict";
// Makes a plan, approves it and executes it, with the WebSocket of the platform.
const [url, token, path] = process.argv.slice(2);
const encoded = Buffer.from(token).toString("base64url");
const ws = new WebSocket(url, ["exacta.ipc.v1", "exacta.token." + encoded]);
const done = [];
let n = 0, answer;

const ask = (command, payload) => new Promise((resolve) => {
  answer = (m) => {
    if (!m.ok) throw new Error(command + ": " + JSON.stringify(m.error));
    done.push(command);
    resolve(m.result);
  };
  const request_id = "00000000-0000-4000-8000-" + String(++n).padStart(12, "0");
  ws.send(JSON.stringify({ipc_version: "1.0", type: "request", request_id, sent_at: new Date().toISOString(), command, payload}, null, 2));
});

ws.onopen = async () => {
  const {project_id} = await ask("OpenProject", {path});
  const {intent} = await ask("ExtractIntent", {project_id, user_input: "Append \"from node\" to a.txt"});
  const {plan_id} = await ask("GeneratePlan", {project_id, intent_id: intent.id});
  await ask("ApprovePlan", {project_id, plan_id});
  await ask("ExecutePlan", {project_id, plan_id});
};
ws.onmessage = ({data}) => {
  const m = JSON.parse(data);
  if (m.type === "response") answer(m);
  if (m.event === "StateChanged" && m.payload.to === "Completed") {
    done.push("Completed");
    ws.close(1000);
  }
};
ws.onerror = (e) => { throw new Error(e.message || "error"); };
ws.onclose = (e) => console.log(done.join(" "), "close", e.code);
