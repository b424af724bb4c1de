package goal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSummarize(t *testing.T) {
	a, b := Cell{Server: "a"}, Cell{Server: "b"}
	all := []Sample{
		{Cell: b, PerSec: 5, Requests: 9},
		{Cell: a, PerSec: 1, CPU: 30, P50: 1, P99: 7, P999: 8, RSS: 10, Peak: 70},
		{Cell: a, Round: 1, PerSec: 3, CPU: 20, P50: 2, P99: 5, P999: 9, RSS: 30, Peak: 50},
		{Cell: a, Round: 2, PerSec: 2, CPU: 90, P50: 9, P99: 6, P999: 1, RSS: 20, Peak: 60},
	}
	got := Summarize(all)
	if len(got) != 2 || got[0].Cell != b || len(got[0].Rounds) != 1 || len(got[1].Rounds) != 3 || got[0].Median.Requests != 9 {
		t.Fatalf("%+v", got)
	}
	// Every figure by itself; the peak is the highest.
	if want := (Sample{Cell: a, PerSec: 2, CPU: 30, P50: 2, P99: 6, P999: 8, RSS: 20, Peak: 70}); got[1].Median != want {
		t.Errorf("median %+v, want %+v", got[1].Median, want)
	}
	if Summarize(nil) != nil {
		t.Error("a summary of nothing")
	}
}

func TestWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.json")
	evaluated := Goal{ID: "G1", What: "w", Must: 2, AtLeast: true}
	evaluated.Add("m", 3)
	evaluated.Evaluate()
	report := Report{Cells: Summarize([]Sample{{Cell: Cell{"s", "m", "", 64, 8}, CPU: 250}}), Goals: []Goal{evaluated}}
	if err := report.Write(name); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(filepath.Join(name, "below")); err == nil {
		t.Error("a report was written below a file")
	}
	report.Table(Grid{Rows: [][]any{{func() {}}}})
	if err := report.Write(name); err == nil {
		t.Error("a function was encoded")
	}
	b, err := os.ReadFile(name)
	var back struct {
		Cells []struct {
			Server      string
			Connections int
			Median      map[string]float64
			Rounds      []map[string]any
			Via         *string
		}
		Goals []map[string]any
	}
	if err == nil {
		err = json.Unmarshal(b, &back)
	}
	if err != nil || len(back.Cells) != 1 || len(back.Goals) != 1 {
		t.Fatalf("%v: %s", err, b)
	}
	if c := back.Cells[0]; c.Server != "s" || c.Connections != 64 || c.Median["cpu_ns_per_request"] != 250 || len(c.Rounds) != 1 || c.Via != nil {
		t.Errorf("%s", b)
	}
	if g := back.Goals[0]; g["goal"] != "G1" || g["verdict"] != "pass" || g["measured"] != 3.0 || g["at_least"] != true {
		t.Errorf("%s", b)
	}
}

func TestUnits(t *testing.T) {
	if Micros(1500*time.Nanosecond) != 1.5 || MiB(3<<19) != 1.5 {
		t.Error("a unit is wrong")
	}
}
