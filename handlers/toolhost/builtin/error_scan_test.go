package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const scanAID = "AID.ERROR_SCAN.v1"

func TestErrorScan(t *testing.T) {
	b := newBench(t)
	f := func(text, more string, matches int64, samples string) {
		t.Helper()
		b.write("base/log.csv", text)
		out := fmt.Sprintf(`{"matches":%d,"sample_rows":[%s]}`, matches, samples)
		s := b.want(scanAID, `{"input_path":"log.csv","pattern":"ERR"`+more+`}`, out)
		b.wantSlot(s, 0, sessionstate.Artifact{Type: "table_summary", Provenance: "scan:ERR", Content: out, Size: matches})
	}
	f("", "", 0, "")
	f("ERR", "", 0, "")
	f("ERR\n", "", 0, "")
	f("h\nERR", "", 1, `{"row_index":2,"row":"ERR"}`)
	f("h\nERR\n", "", 1, `{"row_index":2,"row":"ERR"}`)
	f("ERR\nok\n\nan ERR, \"q\"\t\r\nerr\nERRERR\n", "", 2, `{"row_index":4,"row":"an ERR, \"q\"\t\r"},{"row_index":6,"row":"ERRERR"}`)
	f("h\r\nERR\r\nERR\r", "", 2, `{"row_index":2,"row":"ERR\r"},{"row_index":3,"row":"ERR\r"}`)
	f("h\n\xffERR\n", "", 1, `{"row_index":2,"row":"`+"�"+`ERR"}`)
	all := strings.Repeat("ERR\n", 10)
	five := `{"row_index":2,"row":"ERR"},{"row_index":3,"row":"ERR"},{"row_index":4,"row":"ERR"},{"row_index":5,"row":"ERR"},{"row_index":6,"row":"ERR"}`
	f(all, "", 9, five)
	f(all, `,"max_rows":7`, 6, five)
	f(all, `,"max_rows":6`, 5, five)
	f(all, `,"max_rows":2`, 1, `{"row_index":2,"row":"ERR"}`)
	f(all, `,"max_rows":1`, 0, "")
	f(all, `,"max_rows":0`, 0, "")
	f(all, `,"max_rows":-5`, 0, "")
	f(all, `,"max_rows":"2"`, 9, five)
}

func TestErrorScanDefaultRows(t *testing.T) {
	b := newBench(t)
	b.write("base/log", strings.Repeat("E\n", scanRows+1))
	r := b.run(scanAID, `{"input_path":"log","pattern":"E"}`, new(sessionstate.State))
	if !strings.HasPrefix(string(r.Output), `{"matches":999999,`) {
		t.Errorf("%.40s", r.Output)
	}
	r = b.run(scanAID, `{"input_path":"log","pattern":"E","max_rows":1000001}`, new(sessionstate.State))
	if !strings.HasPrefix(string(r.Output), `{"matches":1000000,`) {
		t.Errorf("%.40s", r.Output)
	}
}

// TestErrorScanCutsLines: what is behind the first MiB of a line is neither searched nor shown, and
// the next line is a new one.
func TestErrorScanCutsLines(t *testing.T) {
	b := newBench(t)
	f := func(line, end string, matches, shown int) {
		t.Helper()
		b.write("base/log", "h"+end+line+end+"tail E"+end)
		r := b.run(scanAID, `{"input_path":"log","pattern":"E"}`, new(sessionstate.State))
		kept := strings.TrimSuffix(end, "\n") // it counts as a part of the line
		if shown = min(shown+len(kept), scanLine); len(line) < shown {
			line += kept
		}
		want := fmt.Sprintf(`{"matches":%d,"sample_rows":[`, matches+1)
		if matches > 0 {
			want += `{"row_index":2,"row":` + quote(line[:shown]) + `},`
		}
		if shown < scanLine { // else no reply carries that: no more samples
			want += `{"row_index":3,"row":` + quote("tail E"+kept) + `}`
		}
		want = strings.TrimSuffix(want, ",") + `]}`
		if string(r.Output) != want {
			t.Errorf("line of %d bytes, end %q: got %.60s… (%d bytes), want %d", len(line), end, r.Output, len(r.Output), len(want))
		}
	}
	x := strings.Repeat("x", scanLine-1)
	for _, end := range []string{"\n", "\r\n"} {
		f(x+"E", end, 1, scanLine)
		f(x+"Ey", end, 1, scanLine)
		f(x+"Eyy", end, 1, scanLine)
		f(x+"yE", end, 0, 0)
		f("E"+x+x+x, end, 1, scanLine)
		f(strings.Repeat("x", 64<<10-1)+"E", end, 1, 64<<10)
	}
}

// TestErrorScanSamplesAreBounded: long lines full of characters that need escapes do not add up,
// and too long stays too long.
func TestErrorScanSamplesAreBounded(t *testing.T) {
	b := newBench(t)
	b.write("base/log", "h\n"+strings.Repeat(strings.Repeat("\x01", scanLine)+"\n", 4))
	r := b.run(scanAID, `{"input_path":"log","pattern":"\u0001"}`, new(sessionstate.State))
	if n := len(r.Output); n < sessionstate.MaxBytes || n > 6*scanLine+100 || !strings.HasPrefix(string(r.Output), `{"matches":4,`) {
		t.Errorf("%d bytes: %.60s", n, r.Output)
	}
}

func TestErrorScanFailures(t *testing.T) {
	b := newBench(t)
	f := func(input, text string) { t.Helper(); b.wantFail(scanAID, input, text) }
	f(`{}`, "missing input_path/pattern")
	f(`{"pattern":"x"}`, "missing input_path/pattern")
	f(`{"input_path":"a.txt"}`, "missing input_path/pattern")
	f(`{"input_path":"a.txt","pattern":""}`, "missing input_path/pattern")
	f(`{"input_path":"a.txt","pattern":["x"]}`, "missing input_path/pattern")
	f(`{"input_path":"nope","pattern":"x"}`, "cannot open file: nope")
	f(`{"input_path":"sub","pattern":"x"}`, "cannot open file: sub")
	f(`{"input_path":"/etc/passwd","pattern":"x"}`, "read path not allowed (outside MACHINA_ROOT): /etc/passwd")
}

// TestLongToolsStop: no one waits for a call whose context is done.
func TestLongToolsStop(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nobody waits"))
	for aid, input := range map[string]string{scanAID: `{"input_path":"a.txt","pattern":"x"}`, "AID.HASH.DIGEST.v1": `{"path":"a.txt"}`} {
		r := b.byID[aid].Run(ctx, callOf(aid, []byte(input), new(sessionstate.State)))
		if r.Status() != tool.ToolError || r.ErrorText() != "nobody waits" {
			t.Errorf("%s: %v %q", aid, r.Status(), r.ErrorText())
		}
	}
}
