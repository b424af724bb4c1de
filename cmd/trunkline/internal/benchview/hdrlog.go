package benchview

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// HDRLog writes the interval histograms of r as an HdrHistogram log (histograms in encoding V2),
// for HistogramLogAnalyzer, HistogramLogProcessor and any library that reads such logs. Values are
// nanoseconds; times are seconds, relative to the BaseTime line, which is when measuring began;
// Interval_Max is in milliseconds. An interval without answers has an empty histogram, so that the
// log has no gap. Warming up is not in it.
func HDRLog(w io.Writer, r *loadgen.Result) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	if err := hdrHead(log, r); err != nil {
		return fmt.Errorf("cannot write HDR log: %w", err)
	}
	for i := range r.Intervals {
		s := &r.Intervals[i]
		if s.From < 0 {
			continue
		}
		h := loadgen.NewHistogram()
		if s.Latency != nil {
			h = s.Latency.Clone() // to stamp it: r stays as it is
		}
		h.SetStartTimeMs(s.From.Milliseconds())
		h.SetEndTimeMs(s.To.Milliseconds())
		if err := log.OutputIntervalHistogram(h); err != nil {
			return fmt.Errorf("cannot write HDR log: %w", err)
		}
	}
	return nil
}

// hdrHead writes the times by hand: the library's lines have whole seconds only.
func hdrHead(log *hdrhistogram.HistogramLogWriter, r *loadgen.Result) error {
	at := float64(r.Start.UnixMilli()) / 1e3
	if r.Start.IsZero() {
		at = 0
	}
	if err := log.OutputLogFormatVersion(); err != nil {
		return err
	}
	for _, line := range []string{
		"[" + targetText(r.Plan.Target) + ", " + scheduleText(&r.Plan) + "]",
		fmt.Sprintf("[BaseTime: %.3f (seconds since epoch)]", at),
		fmt.Sprintf("[StartTime: %.3f (seconds since epoch), %s]", at, r.Start.UTC().Format(time.RFC3339)),
	} {
		if err := log.OutputComment(line); err != nil {
			return err
		}
	}
	return log.OutputLegend()
}
