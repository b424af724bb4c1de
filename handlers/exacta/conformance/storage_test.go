package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sum is the SHA-256 of a text in hex.
func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// canonical returns JSON with its keys sorted and no spaces.
func canonical(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// object reads a file of .exacta.
func (s *server) object(name string) map[string]any {
	s.t.Helper()
	var out map[string]any
	d := json.NewDecoder(strings.NewReader(s.read(".exacta/" + name)))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, s.read(".exacta/"+name))
	}
	return out
}

// saved checks state.json against its form and its checksum (exacta §4.18).
func (c *client) saved(want string) {
	c.t.Helper()
	got := strings.TrimSuffix(c.read(".exacta/state.json"), "\n")
	rest, check, _ := strings.Cut(got, `,"checksum":"`)
	rest = regexp.MustCompile(`,"mac":"[0-9a-f]{64}"$`).ReplaceAllString(rest, "") // an addition
	if rest != want {
		c.t.Errorf("state.json has %s\nwant %s", rest, want)
	}
	o := c.object("state.json")
	delete(o, "checksum")
	if check != sum(canonical(c.t, o))+`"}` {
		c.t.Errorf("the checksum of %s is not %s", got, sum(canonical(c.t, o)))
	}
}

// private checks the modes of all that is in .exacta.
func (c *client) private() {
	c.t.Helper()
	err := filepath.Walk(filepath.Join(c.dir(), ".exacta"), func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			c.t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
}

// TestStorage4_18 looks at the bytes of .exacta from state to state.
func TestStorage4_18(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	const head = `{"schema_version":1,"project_id":"cd6389d6-5643-5997-9b3b-0ca9b25a1497","state":"`
	const tail = `,"last_updated_at":"2026-01-15T00:00:00.000Z","execution":`
	intent := c.intent(`append "x" to a.txt; delete b.txt; build; create file d/e/n.txt`)
	c.saved(head + `Idle","active_plan_id":null,"active_execution_id":null` + tail + "null")
	if got := c.read(".exacta/.gitignore"); got != "*\n" && got != "*" {
		t.Errorf(".gitignore has %q", got)
	}
	plan := c.planOf(intent)
	c.saved(head + `AwaitingApproval","active_plan_id":"` + plan + `","active_execution_id":null` + tail + "null")
	p := c.object("plan/" + plan + ".json")
	if p["status"] != "pending" || p["config_fingerprint"] != sum("{}") && !strings.Contains(c.read(".exacta/plan/"+plan+".json"), sum("{}")) ||
		!strings.Contains(c.read(".exacta/plan/"+plan+".json"), sum("a\n")) || !strings.Contains(c.read(".exacta/plan/"+plan+".json"), sum("a\nx\n")) {
		t.Errorf("the plan is %v", p)
	}
	c.ask("ApprovePlan", `{"plan_id":"`+plan+`"}`)
	if p = c.object("plan/" + plan + ".json"); p["status"] != "approved" {
		t.Errorf("the plan is %v", p)
	}
	if err := os.Chmod(filepath.Join(c.dir(), "b.txt"), 0o640); err != nil {
		t.Fatal(err)
	}
	c.server.write("slow", "")
	x := c.ask("ExecutePlan", `{"plan_id":"`+plan+`"}`).field("execution_id")
	c.until("build 0/1")
	c.saved(head + `Executing","active_plan_id":"` + plan + `","active_execution_id":"` + x + `"` + tail +
		`{"id":"` + x + `","plan_id":"` + plan + `","next":3,"in_step":null,"entries":2}`)
	pause := c.begin("Pause", `{"execution_id":"`+x+`"}`)
	c.remove("slow")
	c.await(pause).is("{…}")
	c.saved(head + `Paused","active_plan_id":"` + plan + `","active_execution_id":"` + x + `"` + tail +
		`{"id":"` + x + `","plan_id":"` + plan + `","next":4,"in_step":null,"entries":2}`)
	first := `{"path":"a.txt","op":"modify","mode":420,"pre_sha256":"` + sum("a\n") + `","post_sha256":"` + sum("a\nx\n") + `","blob":"1.bin","created_dirs":[],"order":1}` +
		`,{"path":"b.txt","op":"delete","mode":416,"pre_sha256":"` + sum("b\n") + `","post_sha256":null,"blob":"2.bin","created_dirs":[],"order":2}`
	c.manifest(x, `"kind":"plan","created_at":"2026-01-15T00:00:00.000Z","sealed":false,"entries":[`+first+`]`)
	c.private()
	c.ask("Resume", `{"execution_id":"`+x+`"}`)
	c.until("Executing→Completed ExecutionComplete")
	c.manifest(x, `"kind":"plan","created_at":"2026-01-15T00:00:00.000Z","sealed":true,"entries":[`+first+
		`,{"path":"d/e/n.txt","op":"create","mode":420,"pre_sha256":null,"post_sha256":"`+sum("d/e/n.txt\n")+`","blob":null,"created_dirs":["d","d/e"],"order":3}]`)
	if c.read(".exacta/rollback/"+x+"/1.bin") != "a\n" || c.read(".exacta/rollback/"+x+"/2.bin") != "b\n" {
		t.Error("the blobs are others")
	}
	c.private()
	r := c.ask("ApplyDiffSet", diffs(modify("a.txt", "@@ -1,2 +1,2 @@\n a\n-x\n+y\n"))).field("rollback_point_id")
	c.manifest(r, `"kind":"diffset","created_at":"2026-01-15T00:00:00.000Z","sealed":true,"entries":[{"path":"a.txt","op":"modify","mode":420,"pre_sha256":"`+
		sum("a\nx\n")+`","post_sha256":"`+sum("a\ny\n")+`","blob":"1.bin","created_dirs":[],"order":1}]`)
	r = c.ask("ApplyDiffSet", diffs("NO_CHANGES_REQUIRED")).field("rollback_point_id")
	c.manifest(r, `"kind":"diffset","created_at":"2026-01-15T00:00:00.000Z","sealed":true,"entries":[]`)
	if left := regexp.MustCompile(`\.tmp\.`).FindString(tree(t, c.dir())); left != "" {
		t.Error("a temporary file is left")
	}
	// the 10 newest points are kept
	for i := range 12 {
		r = c.ask("ApplyDiffSet", diffs(create("k"+string(rune('a'+i))))).field("rollback_point_id")
	}
	points, err := os.ReadDir(filepath.Join(c.dir(), ".exacta/rollback"))
	if _, gone := os.Stat(filepath.Join(c.dir(), ".exacta/rollback", x)); err != nil || len(points) != 10 || gone == nil || c.read(".exacta/rollback/"+r+"/manifest.json") == "-" {
		t.Errorf("%d points, %v", len(points), err)
	}
	c.private()
}

// manifest expects a manifest.json, but for blobs, whose names are free.
func (c *client) manifest(id, want string) {
	c.t.Helper()
	got := regexp.MustCompile(`"blob":"\d+\.bin"`).ReplaceAllString(strings.TrimSuffix(c.read(".exacta/rollback/"+id+"/manifest.json"), "\n"), `"blob":"n.bin"`)
	want = `{"schema_version":1,"id":"` + id + `",` + regexp.MustCompile(`"blob":"\d+\.bin"`).ReplaceAllString(want, `"blob":"n.bin"`) + `}`
	got = regexp.MustCompile(`\],"seq":\d+,"conflicts":0,"mac":"[0-9a-f]{64}"\}$`).ReplaceAllString(got, "]}") // additions
	if got != want {
		c.t.Errorf("the manifest is %s\nwant %s", got, want)
	}
}

// TestSavedStates5_6 starts again with what an earlier session left.
func TestSavedStates5_6(t *testing.T) {
	again := func(t *testing.T, c *client) *client {
		t.Helper()
		c.server.kill()
		c.server.start()
		return c.connect()
	}
	t.Run("AwaitingApproval", func(t *testing.T) {
		t.Parallel()
		c := open(t, stdio, inMake...)
		plan := c.approved("create n.txt")
		c = again(t, c)
		c.logs = true
		if got := c.opens(`"state":"Idle"`).shorts(); !strings.Contains(got, "WARN: ") {
			t.Errorf("events %s", got)
		}
		c.logs = false
		c.ask("ExecutePlan", `{"plan_id":"`+plan+`"}`).is("ST-001 ")
	})
	t.Run("Executing", func(t *testing.T) {
		t.Parallel()
		c := open(t, stdio, inMake...)
		c.server.write("slow", "")
		x := c.executes(`append "x" to a.txt; build; create n.txt`)
		c.until("build 0/1")
		c = again(t, c)
		c.remove("slow")
		r := c.opens(`"state":"Paused"`)
		if got := r.shorts(); got != "Idle→Paused SessionRestored; plan 1; diff; diff" {
			t.Errorf("events %s", got)
		}
		if c.read("a.txt") != "a\nx\n" {
			t.Errorf("a.txt has %q", c.read("a.txt"))
		}
		c.ask("Resume", `{"execution_id":"`+x+`"}`).want("Paused→Executing Resume", `{"execution_id":"`+x+`","status":"executing"}`)
		c.until("Executing→Completed ExecutionComplete")
		c = again(t, c)
		if got := c.opens(`"state":"Completed"`).shorts(); got != "Idle→Completed SessionRestored" {
			t.Errorf("events %s", got)
		}
		c.server.write(".exacta/state.json", strings.Replace(c.read(".exacta/state.json"), "Completed", "Idle", 1))
		c = again(t, c)
		if got := c.opens(`"state":"Failed"`).shorts(); got != "raised ST-002; Idle→Failed SessionRestored" || c.read(".exacta/state.json.bad") == "-" {
			t.Errorf("events %s", got)
		}
		c = again(t, c)
		if got := c.opens(`"state":"Failed"`).shorts(); got != "Idle→Failed SessionRestored" {
			t.Errorf("events %s", got)
		}
	})
	t.Run("drift and damage", func(t *testing.T) {
		t.Parallel()
		c := open(t, stdio, inMake...)
		c.server.write("slow", "")
		x := c.executes(`append "x" to a.txt; build; append "x" to b.txt`)
		pause := c.begin("Pause", `{"execution_id":"`+x+`"}`)
		c.remove("slow")
		c.await(pause).is("{…}")
		resume := `{"execution_id":"` + x + `"}`
		for _, name := range []string{"a.txt", "b.txt", ".exacta/config.json"} { // done, to be done, configuration
			old := c.read(name)
			c.server.write(name, `{"schema_version":1}`)
			c.ask("Resume", resume).want("raised VAL-005", "VAL-005 drift")
			if c.remove(name); old != "-" {
				c.server.write(name, old)
			}
		}
		c.server.write(".exacta/rollback/"+x+"/manifest.json", "{")
		c.ask("Resume", resume).want("raised ST-002; Paused→Failed ResumeFailed", "ST-002 ")
	})
}
