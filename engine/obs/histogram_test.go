package obs

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestHistogramIsRead(t *testing.T) {
	r := newRegistry(t)
	there := false
	err := r.AddHistogram("trunkline_write_seconds", "Writes.", func() (Histogram, bool) {
		return Histogram{Count: 5, Sum: 1.25, Buckets: map[float64]uint64{0.1: 2, 0.5: 4}}, there
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(r.Gatherer(), "trunkline_write_seconds"); n != 0 || err != nil {
		t.Errorf("%d without a reading, %v", n, err)
	}
	there = true
	want := `
# HELP trunkline_write_seconds Writes.
# TYPE trunkline_write_seconds histogram
trunkline_write_seconds_bucket{le="0.1"} 2
trunkline_write_seconds_bucket{le="0.5"} 4
trunkline_write_seconds_bucket{le="+Inf"} 5
trunkline_write_seconds_sum 1.25
trunkline_write_seconds_count 5
`
	if err := testutil.GatherAndCompare(r.Gatherer(), strings.NewReader(want), "trunkline_write_seconds"); err != nil {
		t.Error(err)
	}
	f := func(name, help string) {
		t.Helper()
		if err := r.AddHistogram(name, help, func() (Histogram, bool) { return Histogram{}, false }); err == nil {
			t.Errorf("%q with help %q was taken", name, help)
		}
	}
	f("trunkline_write_seconds", "Writes.")
	f("other_seconds", "x")
	f("trunkline_x_total", "x")
	f("trunkline_y_seconds", "")
}
