package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"trunkline/handlers/threads/rest"
)

// side is a server under test, with the connections and threads that it has.
type side struct {
	at      sides
	http    []*wire
	lines   map[string]*wire // by token
	threads map[string]string
}

// call has a client call a method, and returns what it sees.
func (s *side) call(t *testing.T, on string, client int, bearer, name, body string) string {
	for slot, id := range s.threads {
		body = strings.ReplaceAll(body, slot, id)
	}
	switch on {
	case "lines":
		p := s.lines[bearer]
		if p == nil {
			p = connect(t, s.at.lines)
			s.lines[bearer] = p
			_, _ = io.WriteString(p, authLine(bearer))
			_, _ = p.in.ReadString('\n')
		}
		_, _ = io.WriteString(p, `{"id":1,"method":"`+name+`","params":`+body+"}\n")
		line, err := p.in.ReadString('\n')
		return fmt.Sprint(line, err)
	case "/mcp":
		body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + body + `}}`
		s.http[client].write(post("/mcp", bearer, "Accept: application/json, text/event-stream\n", body))
	default:
		s.http[client].write(post(on+name, bearer, "", body))
	}
	a, _ := s.http[client].answer("POST")
	return a
}

// TestModel has agents of several workspaces call methods in any order, over few connections, each
// of which any of them uses, on one server and through a router. They see the same.
func TestModel(t *testing.T) {
	one, c := direct(t, rest.Limits{}), newCluster(t, 3, rest.Limits{}, nil)
	names, run := append(workspaces(3), workspaces(2)...), 0
	both := [2]*side{{at: one, lines: map[string]*wire{}}, {at: c.at, lines: map[string]*wire{}}}
	for _, s := range both {
		s.http = []*wire{connect(t, s.at.web), connect(t, s.at.web)}
	}
	rapid.Check(t, func(rt *rapid.T) {
		run++
		for _, s := range both {
			s.threads = map[string]string{}
		}
		some := func(label string, list ...string) string { return rapid.SampledFrom(list).Draw(rt, label) }
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			workspace := rapid.IntRange(0, len(names)-1).Draw(rt, "workspace")
			role := some("role", "coordinator", "participant")
			bearer := bearerOf("agent", names[workspace], role)
			slot := fmt.Sprintf("$TH%d", workspace)
			name, body := "create_thread", `{"workspace_id":"`+names[workspace]+`","title":"t","type":"workflow","participants":["agent","other"]}`
			if both[0].threads[slot] != "" {
				name = some("method", "post_message", "read_messages", "get_thread", "ack_read", "update_thread_status", "heartbeat_session", "summarize_thread", "trigger_participant")
				body = map[string]string{
					"post_message":         `{"thread_id":"` + slot + `","schema_version":1,"kind":"chat","body":"` + some("text", "a", "b") + `","idempotency_key":"` + some("key", "k", "l") + `"}`,
					"read_messages":        `{"thread_id":"` + slot + `","since_seq":` + some("since", "0", "1", "99") + `}`,
					"get_thread":           `{"thread_id":"` + some("thread", slot, "th_01ARZ3NDEKTSV4RRFFQ69G5FAV") + `"}`,
					"ack_read":             `{"thread_id":"` + slot + `","last_read_seq":` + some("seq", "0", "1", "2") + `}`,
					"update_thread_status": `{"thread_id":"` + slot + `","status":"` + some("status", "active", "blocked", "resolved") + `"}`,
					"heartbeat_session":    `{"session_id":"sess_agent","runtime":"r","resumable":true,"status":"idle"}`,
					"summarize_thread":     `{"thread_id":"` + slot + `"}`,
					"trigger_participant":  `{"thread_id":"` + slot + `","target_agent_id":"other","reason":"r","trigger_prompt":"p"}`,
				}[name]
			}
			on := some("on", "/v1/", "/v1/mcp/", "/mcp", "lines")
			client := rapid.IntRange(0, 1).Draw(rt, "client")
			var seen [2]string
			for i, s := range both {
				seen[i] = s.call(t, on, client, bearer, name, body)
				if id := madeIDs.FindString(seen[i]); name == "create_thread" && id != "" {
					s.threads[slot] = id
				}
				seen[i] = plain(seen[i])
			}
			if seen[0] != seen[1] {
				rt.Fatalf("%s on %s of %s %d: %s\nserver %s\nrouter %s", name, on, role, workspace, body, seen[0], seen[1])
			}
		}
	})
}
