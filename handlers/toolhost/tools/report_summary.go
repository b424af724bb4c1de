package tools

import (
	"context"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// maxDepth is how deep JSON inside a document may nest (toolhost §2.4).
const maxDepth = 32

// reportSummary makes a text for people of what ERROR_SCAN left in DS0.
func reportSummary() Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.REPORT_SUMMARY.v1",
		Name:          "report_summary",
		Deterministic: true,
		Tags:          []string{"tag.report", "tag.error"},
		SideEffects:   []string{"none"},
	}, runReportSummary)
}

func runReportSummary(_ context.Context, c *tool.Call) tool.Result {
	found, ok := scanResult(c.State)
	if !ok {
		return tool.Fail("missing DS0 (expected scan result)")
	}
	matches := integerOf(found.value("matches"), 0)
	out := []byte(`{"title":"Error Scan Report","matches":`)
	out = strconv.AppendInt(out, matches, 10)
	out = append(out, `,"text":`...)
	out = jsonx.AppendString(out, appendReport(nil, matches, found.value("sample_rows")))
	out = append(out, '}')
	c.State.Set(2, dsstate.Artifact{Type: "report", Provenance: "report_summary", Content: string(out)})
	return tool.Result{Output: out}
}

// scanResult reads DS0, which a caller may have filled with anything: any JSON object counts as the result of a scan.
func scanResult(s *dsstate.State) (a args, ok bool) {
	ds0, ok := s.Get(0)
	if !ok {
		return args{}, false
	}
	content := []byte(ds0.Content)
	if !jsonx.Check(content, maxDepth).OK() || jsonx.ValueOf(content).Kind != jsonx.ObjectStart {
		return args{}, false
	}
	return pick(content, "matches", "sample_rows"), true
}

// appendReport appends the text of the report, line by line (toolhost §4.7 Details).
func appendReport(dst []byte, matches int64, samples jsonx.Value) []byte {
	dst = append(dst, "Error Scan Report\nmatches: "...)
	dst = strconv.AppendInt(dst, matches, 10)
	dst = append(dst, "\nsamples:\n"...)
	rows := jsonx.OpenArray(samples.Raw)
	for shown := 0; shown < maxSamples; {
		v, ok := rows.Next()
		if !ok {
			break
		}
		if v.Kind != jsonx.ObjectStart {
			continue
		}
		sample := pick(v.Raw, "row_index", "row")
		row, _ := sample.text("row")
		dst = append(dst, "- ["...)
		dst = strconv.AppendInt(dst, sample.integer("row_index", 0), 10)
		dst = append(dst, "] "...)
		dst = append(dst, row...)
		dst = append(dst, '\n')
		shown++
	}
	return dst
}
