package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/fuzz/kit"
)

// scratch is a directory that goes away with the test process, with the program if it is built.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "threads-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// The secret and the issuer of threads §9.
const (
	secret = "0123456789abcdef0123456789abcdef"
	issuer = "https://issuer.example"
)

// server is a running program.
type server struct {
	t           testing.TB
	dir         string
	env         []string
	cmd         *exec.Cmd
	http, lines string
	log         *kit.Text

	whole   testing.TB       // the test that started it
	bridges map[string]*peer // by token, over stdio
}

// start starts a server with environment entries in the names of the protocol.
func start(t testing.TB, env ...string) *server {
	s := &server{t: t, whole: t, dir: t.TempDir(), env: env, bridges: map[string]*peer{}}
	if err := os.WriteFile(filepath.Join(s.dir, "secret"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run()
	t.Cleanup(s.kill)
	return s
}

var listening = map[string]*regexp.Regexp{
	"http":  regexp.MustCompile(`(?m)^threads http listening on (\S+) `),
	"lines": regexp.MustCompile(`(?m)^threads lines listening on (\S+) `),
}

func (s *server) run() {
	s.t.Helper()
	s.cmd = exec.Command(kit.Program(s.t, scratch), "serve", "--listen", "127.0.0.1:0",
		"--http-listen", "", "--admin-listen", "")
	s.cmd.Dir = s.dir
	s.cmd.Env = append(append(os.Environ(), "AUTH_HS256_SECRET_FILE=secret", "AUTH_ISSUER="+issuer, "API_PORT=0", "NDJSON_ADDR=127.0.0.1:0"), s.env...)
	s.log = &kit.Text{}
	s.cmd.Stderr = s.log
	if err := kit.Start(s.cmd); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(s.log.String(), `"msg":"serving"`); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the server does not start: %s", s.log)
		}
	}
	s.http = "http://" + listening["http"].FindStringSubmatch(s.log.String())[1]
	s.lines = listening["lines"].FindStringSubmatch(s.log.String())[1]
}

// kill ends the server as a crash does.
func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// stop ends the server and expects that it ends well.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("%v: %s", err, s.log)
	}
}

// claims are those of a token, with the defaults of threads §9.
type claims map[string]any

func tokenOf(changes claims) string {
	c := jwt.MapClaims{"iss": issuer, "aud": "orkiva", "agent_id": "reviewer_agent", "workspace_id": "wk_mobile_core", "role": "participant",
		"session_id": "sess_rv_12", "iat": 1771329600, "exp": 4102444800, "jti": "jti-0001"}
	for k, v := range changes {
		if v == nil {
			delete(c, k)
		} else {
			c[k] = v
		}
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(secret))
	if err != nil {
		panic(err)
	}
	return text
}

var (
	reviewer    = tokenOf(nil)
	coordinator = tokenOf(claims{"agent_id": "coordinator_agent", "role": "coordinator", "session_id": "sess_co"})
	operator    = tokenOf(claims{"agent_id": "operator_agent", "role": "operator", "session_id": "sess_op"})
	executioner = tokenOf(claims{"agent_id": "executioner_agent", "session_id": "sess_ex"})
	stranger    = tokenOf(claims{"agent_id": "stranger_agent", "session_id": "sess_st"})
	auditor     = tokenOf(claims{"agent_id": "auditor_agent", "role": "auditor", "session_id": "sess_au"})
	foreigner   = tokenOf(claims{"workspace_id": "wk_other", "role": "coordinator"})
)

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// code returns the code of an error.
func (a *answer) code() string {
	e, _ := a.body["error"].(map[string]any)
	code, _ := e["code"].(string)
	return code
}

func (s *server) request(method, path, token, body string, header ...string) *answer {
	s.t.Helper()
	req, err := http.NewRequest(method, s.http+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return s.do(req)
}

func (s *server) do(req *http.Request) *answer {
	s.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := &answer{status: res.StatusCode, header: res.Header, text: string(text)}
	_ = json.Unmarshal(text, &a.body)
	return a
}

// post calls a method on the canonical path.
func (s *server) post(name, token, body string, header ...string) *answer {
	s.t.Helper()
	return s.request(http.MethodPost, "/v1/"+name, token, body, header...)
}

// create makes a thread of the executioner and the reviewer.
func (s *server) create() string {
	s.t.Helper()
	a := s.post("create_thread", coordinator, `{"workspace_id":"wk_mobile_core","title":"Mapper review","type":"workflow","participants":["executioner_agent","reviewer_agent"]}`)
	id, _ := a.body["thread_id"].(string)
	if a.status != 200 || id == "" {
		s.t.Fatalf("%d %s", a.status, a.text)
	}
	return id
}

// peer is a connection of lines.
type peer struct {
	t  testing.TB
	in *bufio.Reader
	io.ReadWriteCloser
}

func (p *peer) send(format string, args ...any) error {
	_, err := fmt.Fprintf(p, format+"\n", args...)
	return err
}
