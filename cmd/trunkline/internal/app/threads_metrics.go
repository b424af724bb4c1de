package app

import (
	"strconv"

	"trunkline/engine/obs"
	"trunkline/engine/store/rows"
	core "trunkline/engine/threads"
	"trunkline/handlers/threads"
	threadlines "trunkline/handlers/threads/lines"
)

// threadStats is what one reading of agent threads gives.
type threadStats struct {
	core.Stats
	rows  rows.Stats
	lines *threadlines.Counts // nil where there are none
}

// threadMetrics are those of agent threads on the admin address.
var threadMetrics = []metric[threadStats]{
	gauge("trunkline_threads", "Threads in all states.", func(s *threadStats) float64 { return float64(s.Threads) }),
	gauge("trunkline_threads_sessions", "Agents with a registered runtime.", func(s *threadStats) float64 { return float64(s.Sessions) }),
	gauge("trunkline_threads_open_jobs", "Trigger jobs that are not final.", func(s *threadStats) float64 { return float64(s.OpenJobs) }),
	counter("trunkline_threads_unacknowledged_total", "Deliveries to a runtime without a sign of its agent in time.", func(s *threadStats) float64 { return float64(s.Unacknowledged) }),
	counter("trunkline_threads_messages_total", "Messages appended.", func(s *threadStats) float64 { return float64(s.Posted) }),
	gauge("trunkline_threads_hot_bytes", "Memory of the latest messages.", func(s *threadStats) float64 { return float64(s.HotBytes) }),
	gauge("trunkline_threads_unstored_bytes", "Bytes of messages that are not rows yet.", func(s *threadStats) float64 { return float64(s.UnstoredBytes) }),
	gauge("trunkline_threads_keys", "Idempotency keys that are remembered.", func(s *threadStats) float64 { return float64(s.Keys) }),
	gauge("trunkline_threads_key_bytes", "Memory of the filters of idempotency keys.", func(s *threadStats) float64 { return float64(s.KeyBytes) }),
	gauge("trunkline_rows_disk_bytes", "Bytes of the rows on the disk.", func(s *threadStats) float64 { return float64(s.rows.DiskBytes) }),
	gauge("trunkline_rows_memory_bytes", "Memory of the rows: cache, rows without a file, open files.", func(s *threadStats) float64 { return float64(s.rows.MemoryBytes) }),
	counter("trunkline_rows_flushed_bytes_total", "Bytes of rows written into sorted files.", func(s *threadStats) float64 { return float64(s.rows.FlushedBytes) }),
	counter("trunkline_rows_merged_bytes_total", "Bytes of rows written by merges of files.", func(s *threadStats) float64 { return float64(s.rows.MergedBytes) }),
	{Family: obs.Family{Name: "trunkline_threads_lines_sessions", Help: "Open connections of lines.", Kind: obs.Gauge}, series: func(s *threadStats, put putSeries) {
		if s.lines != nil {
			put(float64(s.lines.Sessions.Load()))
		}
	}},
	{Family: obs.Family{Name: "trunkline_threads_lines_requests_total", Help: "Requests over lines, by what came of them.", Labels: []string{"result"}}, series: func(s *threadStats, put putSeries) {
		if s.lines != nil {
			faults, refused := s.lines.Faults.Load(), s.lines.Refused.Load()
			put(float64(max(s.lines.Requests.Load()-faults, 0)), "ok")
			put(float64(faults-min(refused, faults)), "refused")
			put(float64(refused), "unauthorized")
		}
	}},
}

// threadStats returns nil before the rows are open.
func (c *replica) threadStats() *threadStats {
	rt := c.kernel.rt
	db := rt.Rows()
	if db == nil {
		return nil
	}
	st := &threadStats{Stats: rt.Threads.Stats(), rows: db.Stats()}
	if c.threads != nil {
		st.lines = c.threads.sessions.Counts()
	}
	return st
}

// contractMetrics appends the families of threads §4.10 beside those of HTTP.
func contractMetrics(e *core.Engine, jobs *threads.Jobs) func(dst []byte) []byte {
	return func(dst []byte) []byte {
		dst = append(dst, "# HELP thread_messages_total Messages appended.\n# TYPE thread_messages_total counter\nthread_messages_total "...)
		dst = append(strconv.AppendUint(dst, e.Stats().Posted, 10), '\n')
		return jobs.AppendMetrics(dst)
	}
}
