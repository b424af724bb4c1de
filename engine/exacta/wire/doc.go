// Package wire is the text of exacta: it scans messages of clients in place and appends what a
// server sends (exacta §3), with its identifiers (§6.2) and times (§6.3).
//
//	line ─► Scanner.Scan ─► Message{type, command, ids, payload} or Refusal (§3.6, steps 1 to 12)
//
//	{"ipc_version":"1.0","type":"response","request_id":…,"correlation_id":…,"sent_at":…,
//	 "ok":…,"result":…,"error":…}
//	{"ipc_version":"1.0","type":"event","event":…,"event_id":…,"sent_at":…,"request_id":…,
//	 "correlation_id":…,"seq":…,"project_id":…,"stream_seq":…,"payload":…}
//
// Views point into the line and are valid as long as it is. What appends allocates only where the
// destination has no room.
package wire
