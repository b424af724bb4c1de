package builtin

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
)

const reportAID = "AID.REPORT_SUMMARY.v1"

func TestReportSummary(t *testing.T) {
	b := newBench(t)
	f := func(content string, matches int64, rows string) {
		t.Helper()
		var s sessionstate.State
		s.Set(0, sessionstate.Artifact{Content: content})
		text := fmt.Sprintf("Error Scan Report\nmatches: %d\nsamples:\n%s", matches, rows)
		out := fmt.Sprintf(`{"title":"Error Scan Report","matches":%d,"text":%s}`, matches, quote(text))
		b.wantOn(&s, reportAID, `{"any":1}`, out)
		b.wantSlot(&s, 2, sessionstate.Artifact{Type: "report", Provenance: "report_summary", Content: out})
	}
	f(`{"matches":0,"sample_rows":[]}`, 0, "")
	f(`{"matches":2,"sample_rows":[{"row_index":3,"row":"a \"b\""},{"row_index":9,"row":"c"}]}`, 2, "- [3] a \"b\"\n- [9] c\n")
	f(`{"matches":7,"sample_rows":[`+strings.Repeat(`{"row_index":1,"row":"x"},`, 5)+`{}]}`, 7, strings.Repeat("- [1] x\n", 5))
	// DS0 may come from the caller: what is not as ERROR_SCAN writes it counts as absent.
	f(`{}`, 0, "")
	f(` {"matches":"2","sample_rows":{"row":1}} `, 0, "")
	f(`{"matches":1.0,"sample_rows":[1,"x",null,[],{"row_index":"1","row":2},{"row":"\ud800"}]}`, 1, "- [0] \n- [0] �\n")
}

func TestReportSummaryWithoutScan(t *testing.T) {
	b := newBench(t)
	f := func(content string) {
		t.Helper()
		var s sessionstate.State
		s.Set(0, sessionstate.Artifact{Type: "table_summary", Content: content})
		if r := b.run(reportAID, `{}`, &s); r.ErrorText() != "missing DS0 (expected scan result)" {
			t.Errorf("%.40q: %v %q", content, r.Status(), r.ErrorText())
		}
	}
	b.wantFail(reportAID, `{}`, "missing DS0 (expected scan result)")
	f("")
	f("text")
	f("[]")
	f("null")
	f(`{"matches":1`)
	f(`{"matches":1} x`)
	f(`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`)
}

// TestScanThenReport is the way the two tools are meant to be used.
func TestScanThenReport(t *testing.T) {
	b := newBench(t)
	b.write("base/log.csv", "ts,msg\n1,ok\n2,E disk\n")
	s := b.want(scanAID, `{"input_path":"log.csv","pattern":"E"}`, `{"matches":1,"sample_rows":[{"row_index":3,"row":"2,E disk"}]}`)
	b.wantOn(s, reportAID, `{}`, `{"title":"Error Scan Report","matches":1,"text":"Error Scan Report\nmatches: 1\nsamples:\n- [3] 2,E disk\n"}`)
}
