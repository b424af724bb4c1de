package loadgen

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	projectOfTest = "cd6389d6-5643-5997-9b3b-0ca9b25a1497"
	anyUUID       = "11111111-2222-4333-8444-aaaaaaaaaaaa"
)

// workshop is a server of projects in which nothing ever runs.
type workshop struct {
	mu     sync.Mutex // of all below
	code   string     // of its answer to OpenProject, "" for none
	open   bool
	closed int
	ids    map[string]bool
	asked  map[string]int // by command
	wrong  []string       // what no client may send
}

func (s *workshop) dial(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		for in := bufio.NewScanner(theirs); in.Scan(); {
			if _, err := theirs.Write([]byte(s.answer(in.Bytes()))); err != nil {
				return
			}
		}
	}()
	return ours, nil
}

var requestID = regexp.MustCompile(`^[0-9a-f]{8}-([0-9]{4}|ffff)-4000-8000-[0-9a-f]{12}$`)

// answer answers a line; an OpenProject has an event before its response.
func (s *workshop) answer(line []byte) string {
	var q struct {
		Type, Command string
		Token         string
		ID            string `json:"request_id"`
		Payload       struct {
			Path      string
			ProjectID string `json:"project_id"`
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := json.Unmarshal(line, &q)
	if q.Type == "auth" {
		return fmt.Sprintf(`{"ipc_version":"1.0","type":"ack","request_id":null,"sent_at":%s,"ok":%v,"result":null,"error":{"code":"SEC-002"}}`+"\n", exactaTime, q.Token == "secret")
	}
	if err != nil || q.Type != "request" || !requestID.MatchString(q.ID) || s.ids[q.ID] {
		s.wrong = append(s.wrong, string(line))
	}
	s.ids[q.ID] = true
	s.asked[q.Command]++
	code, result, events := "", `{"project_id":"`+projectOfTest+`"}`, ""
	switch {
	case q.Command == "OpenProject":
		if _, err := os.Stat(filepath.Join(q.Payload.Path, "go.mod")); err != nil {
			s.wrong = append(s.wrong, err.Error())
		}
		s.open, code = s.code == "", s.code
		events = `{"ipc_version":"1.0","type":"event","event":"LogEntry","payload":{}}` + "\n"
	case !s.open || q.Payload.ProjectID != projectOfTest:
		code = "ST-003"
	case q.Command == "CloseProject":
		s.open = false
		s.closed++
	default:
		code = expectedCode
	}
	head := events + fmt.Sprintf(`{"ipc_version":"1.0","type":"response","request_id":%q,"correlation_id":"%s","sent_at":%s,`, q.ID, anyUUID, exactaTime)
	if code == "" {
		return head + `"ok":true,"result":` + result + `,"error":null}` + "\n"
	}
	return head + `"ok":false,"result":null,"error":{"code":"` + code + `","category":"State"}}` + "\n"
}

// inWorkshop runs a plan against a workshop. The folder of its project is gone then.
func inWorkshop(t *testing.T, s *workshop, p Plan) (r *Result, err error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	s.ids, s.asked = make(map[string]bool), make(map[string]int)
	synctest.Test(t, func(t *testing.T) {
		p.Target.Protocol, p.Target.Addr, p.Target.Dial = ProtocolExacta, "fake:1", s.dial
		p.Schedule, p.Depth, p.Duration, p.Timeout, p.Interval = Schedule{To: 100}, 2, 2*time.Second, time.Second, time.Second
		r, err = run(t.Context(), p, nil, timerAlarm, secret)
	})
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 || len(s.wrong) > 0 {
		t.Errorf("left over: %v; the server got %q", left, s.wrong)
	}
	return r, err
}

// TestTheProjectOfARun is there for its requests, and closed after it.
func TestTheProjectOfARun(t *testing.T) {
	s := new(workshop)
	r, err := inWorkshop(t, s, Plan{Conns: 4, Target: Target{Token: "secret"}})
	if err != nil || r.Total.Done != 200 || r.Total.Failed != 0 || r.Total.Late != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	if s.closed != 1 || s.open || len(s.ids) != 202 || s.asked["Pause"] < 150 || s.asked["OpenProject"] < 1 {
		t.Errorf("closed %d times, %d requests: %v", s.closed, len(s.ids), s.asked)
	}
	// What needs no project makes none, and errors have their code.
	s = new(workshop)
	r, err = inWorkshop(t, s, Plan{Conns: 2, Mix: []Share{{Name: "Pause", Weight: 1, Body: []byte(`{"project_id":"` + anyUUID + `"}`)}}})
	if err != nil || r.Total.Errors["ST-003"] != 200 || s.asked["OpenProject"]+s.closed != 0 {
		t.Errorf("%v %+v, %v", err, r, s.asked)
	}
}

// TestServersWithoutTheProject: what cannot be prepared ends a run before it begins.
func TestServersWithoutTheProject(t *testing.T) {
	f := func(s *workshop, p Plan, of error, want string) {
		t.Helper()
		p.Conns = 2
		if _, err := inWorkshop(t, s, p); !errors.Is(err, of) || !strings.Contains(err.Error(), want) || s.closed != 0 {
			t.Errorf("%v, want %q; closed %d times", err, want, s.closed)
		}
	}
	f(&workshop{code: "FS-001"}, Plan{}, ErrPrepare, "OpenProject: FS-001")
	f(&workshop{}, Plan{Target: Target{Token: "other"}}, ErrConnect, "refuses the token: SEC-002")
}

func TestEnvelopes(t *testing.T) {
	f := func(stream string, want ...string) {
		t.Helper()
		wantReplies(t)(ProtocolExacta, stream, want...)
	}
	response := func(id, rest string) string {
		return `{"ipc_version":"1.0","type":"response","request_id":` + id + `,"correlation_id":"` + anyUUID + `","sent_at":` + exactaTime + rest + "}\n"
	}
	const id = `"01234567-0001-4000-8000-00000000000f"`
	f(response(id, `,"ok":true,"result":{},"error":null`), "ok id=f")
	f(response(id, `,"ok":false,"result":null,"error":{"code":"ST-001","category":"State"}`), "ok id=f ST-001")
	f(response(id, `,"ok":false,"result":null,"error":{"code":"ST-003","category":"State"}`), "id=f ST-003")
	f(response(id, ` ,"ok":false,"error":{"category":"State","code":"ST-001"}`), "ok id=f ST-001")
	f(response("null", `,"ok":false,"result":null,"error":{"code":"IPC-001"}`), "stray IPC-001")
	f(`{"ipc_version":"1.0","type":"event","event":"LogEntry"}`+"\n"+`{ "type":"event" }`+"\n", "none", "none")
	f("[]\n", errMalformed.Error())
	f(`{"type":`)
}

func FuzzEnvelopes(f *testing.F) {
	f.Add([]byte(`{"ipc_version":"1.0","type":"response","request_id":"` + anyUUID + `","ok":true}` + "\n"))
	fuzzDialect(f, ProtocolExacta)
}
