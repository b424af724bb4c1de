package tools

import (
	"context"
	"errors"
	"fmt"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

// maxDepth is how deep JSON inside a document may nest (toolhost §2.4).
const maxDepth = 32

var errMissingScanResult = errors.New("missing DS0 (expected scan result)")

// reportSummary makes a text for people of what ERROR_SCAN left in DS0. A caller may have filled
// that slot with anything: any JSON object counts as the result of a scan.
func reportSummary(_ context.Context, _ *Env, c *tool.Call) ([]byte, error) {
	ds0, ok := c.State.Get(0)
	if !ok || !isObject([]byte(ds0.Content), maxDepth) {
		return nil, errMissingScanResult
	}
	found := pick([]byte(ds0.Content), "matches", "sample_rows")
	matches := found.integer("matches", 0)
	out := jsonx.Build(nil).Text("title", "Error Scan Report").Int("matches", matches).
		Bytes("text", appendReport(nil, matches, found.value("sample_rows"))).End()
	c.State.Set(2, dsstate.Artifact{Type: "report", Provenance: "report_summary", Content: string(out)})
	return out, nil
}

// isObject reports whether text is a JSON object that nests no deeper than depth.
func isObject(text []byte, depth int) bool {
	return jsonx.Check(text, depth).OK() && jsonx.ValueOf(text).Kind == jsonx.ObjectStart
}

// appendReport appends the text of the report, line by line (toolhost §4.7 Details).
func appendReport(dst []byte, matches int64, samples jsonx.Value) []byte {
	dst = fmt.Appendf(dst, "Error Scan Report\nmatches: %d\nsamples:\n", matches)
	rows := jsonx.OpenArray(samples.Raw)
	for shown := 0; shown < maxSamples; {
		v, ok := rows.Next()
		if !ok {
			break
		}
		if v.Kind == jsonx.ObjectStart {
			sample := pick(v.Raw, "row_index", "row")
			row, _ := sample.text("row")
			dst = fmt.Appendf(dst, "- [%d] %s\n", sample.integer("row_index", 0), row)
			shown++
		}
	}
	return dst
}
