package benchview

import (
	"io"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/loadgen"
)

// jsonFormat is the number of the shape that JSON writes. It changes when a member goes or changes
// its meaning, not when one comes.
const jsonFormat = 1

// JSON writes r as one indented object. Times and latencies are integers in nanoseconds (_ns),
// rates are numbers per second (_per_second), sizes are bytes (_bytes); every latency is from the
// intended start of its request. Members that have no value are null, never left out.
//
//	format                   1; another number means that members went or changed their meaning
//	plan                     what was asked:
//	  protocol, address      the target, without user name, password and query
//	  schedule               kind ("constant", "ramp", "max"), from_per_second, to_per_second
//	  mix                    for each method: method, weight, body_bytes (0: the built-in body)
//	  connections, depth     and the most requests in flight on each of them
//	  warmup_ns, duration_ns and count: the bounds; count 0 is none
//	  timeout_ns             of one request
//	  interval_ns            of intervals
//	  seed                   a string, as it may be greater than numbers of JSON can hold exactly
//	start                    when measuring began, RFC 3339 with nanoseconds, UTC
//	missed_schedule          true if the generator itself was late; latest_lag_ns is by how much at most
//	stopped                  true if the run was ended before its time
//	remarks                  the sentences that Summary ends with
//	total                    what was measured, as one sample
//	intervals                the samples over time, in order; those of a long run are joined, see from_ns and to_ns
//
// A sample has:
//
//	from_ns, to_ns           since start
//	due, sent, done, failed  requests: whose intended start is in the sample, written, answered well, ended otherwise
//	in_flight                sent and not ended, at to_ns
//	due_per_second           and sent_, done_, failed_per_second: the same over to_ns - from_ns
//	connections_lost         ended unannounced; late_replies came to requests given up before
//	sent_bytes               and received_bytes: on the connections
//	latency                  null if nothing was recorded, else count, min_ns, mean_ns, stddev_ns, p50_ns, p75_ns, p90_ns, p95_ns,
//	                         p99_ns, p999_ns, p9999_ns, max_ns
//	errors                   failed by code
//	methods                  for each method: method, done, failed, latency
func JSON(w io.Writer, r *loadgen.Result) error {
	out := jsonResult{
		Format:         jsonFormat,
		Plan:           planOf(&r.Plan),
		Start:          r.Start.UTC().Format(time.RFC3339Nano),
		MissedSchedule: r.MissedSchedule,
		LatestLag:      int64(r.LatestLag),
		Stopped:        r.Stopped,
		Remarks:        append([]string{}, sentences(r)...),
		Total:          sampleOf(&r.Plan, &r.Total),
		Intervals:      make([]jsonSample, len(r.Intervals)),
	}
	for i := range r.Intervals {
		out.Intervals[i] = sampleOf(&r.Plan, &r.Intervals[i])
	}
	return cli.WriteJSON(w, out)
}

type jsonResult struct {
	Format         int          `json:"format"`
	Plan           jsonPlan     `json:"plan"`
	Start          string       `json:"start"`
	MissedSchedule bool         `json:"missed_schedule"`
	LatestLag      int64        `json:"latest_lag_ns"`
	Stopped        bool         `json:"stopped"`
	Remarks        []string     `json:"remarks"`
	Total          jsonSample   `json:"total"`
	Intervals      []jsonSample `json:"intervals"`
}

type jsonPlan struct {
	Protocol    string       `json:"protocol"`
	Address     string       `json:"address"`
	Schedule    jsonSchedule `json:"schedule"`
	Mix         []jsonShare  `json:"mix"`
	Connections int          `json:"connections"`
	Depth       int          `json:"depth"`
	Warmup      int64        `json:"warmup_ns"`
	Duration    int64        `json:"duration_ns"`
	Count       int64        `json:"count"`
	Timeout     int64        `json:"timeout_ns"`
	Interval    int64        `json:"interval_ns"`
	Seed        string       `json:"seed"`
}

type jsonSchedule struct {
	Kind string  `json:"kind"`
	From float64 `json:"from_per_second"`
	To   float64 `json:"to_per_second"`
}

type jsonShare struct {
	Method string `json:"method"`
	Weight int    `json:"weight"`
	Body   int    `json:"body_bytes"`
}

type jsonSample struct {
	From       int64            `json:"from_ns"`
	To         int64            `json:"to_ns"`
	Due        int64            `json:"due"`
	Sent       int64            `json:"sent"`
	Done       int64            `json:"done"`
	Failed     int64            `json:"failed"`
	InFlight   int64            `json:"in_flight"`
	DueRate    float64          `json:"due_per_second"`
	SentRate   float64          `json:"sent_per_second"`
	DoneRate   float64          `json:"done_per_second"`
	FailedRate float64          `json:"failed_per_second"`
	Lost       int64            `json:"connections_lost"`
	Late       int64            `json:"late_replies"`
	SentBytes  int64            `json:"sent_bytes"`
	Received   int64            `json:"received_bytes"`
	Latency    *jsonLatency     `json:"latency"`
	Errors     map[string]int64 `json:"errors"`
	Methods    []jsonMethod     `json:"methods"`
}

type jsonMethod struct {
	Method  string       `json:"method"`
	Done    int64        `json:"done"`
	Failed  int64        `json:"failed"`
	Latency *jsonLatency `json:"latency"`
}

type jsonLatency struct {
	Count  int64   `json:"count"`
	Min    int64   `json:"min_ns"`
	Mean   float64 `json:"mean_ns"`
	Stddev float64 `json:"stddev_ns"`
	P50    int64   `json:"p50_ns"`
	P75    int64   `json:"p75_ns"`
	P90    int64   `json:"p90_ns"`
	P95    int64   `json:"p95_ns"`
	P99    int64   `json:"p99_ns"`
	P999   int64   `json:"p999_ns"`
	P9999  int64   `json:"p9999_ns"`
	Max    int64   `json:"max_ns"`
}

func planOf(p *loadgen.Plan) jsonPlan {
	out := jsonPlan{
		Protocol: p.Target.Protocol, Address: address(p.Target),
		Schedule:    jsonSchedule{kind(p.Schedule.Kind), p.Schedule.From, p.Schedule.To},
		Mix:         make([]jsonShare, len(p.Mix)),
		Connections: p.Conns, Depth: p.Depth,
		Warmup: int64(p.Warmup), Duration: int64(p.Duration), Count: p.Count,
		Timeout: int64(p.Timeout), Interval: int64(p.Interval),
		Seed: strconv.FormatUint(p.Seed, 10),
	}
	for i, sh := range p.Mix {
		out.Mix[i] = jsonShare{sh.Name, sh.Weight, len(sh.Body)}
	}
	return out
}

func sampleOf(p *loadgen.Plan, s *loadgen.Sample) jsonSample {
	d := s.To - s.From
	out := jsonSample{
		From: int64(s.From), To: int64(s.To),
		Due: s.Due, Sent: s.Sent, Done: s.Done, Failed: s.Failed, InFlight: s.InFlight,
		DueRate: perSecond(s.Due, d), SentRate: perSecond(s.Sent, d), DoneRate: perSecond(s.Done, d), FailedRate: perSecond(s.Failed, d),
		Lost: s.Lost, Late: s.Late,
		SentBytes: s.Bytes.Sent, Received: s.Bytes.Received,
		Latency: latencyOf(s.Latency),
		Errors:  s.Errors,
		Methods: []jsonMethod{},
	}
	if out.Errors == nil {
		out.Errors = map[string]int64{}
	}
	for _, name := range methods(p, s.ByMethod) {
		m := s.ByMethod[name]
		out.Methods = append(out.Methods, jsonMethod{name, m.Done, m.Failed, latencyOf(m.Latency)})
	}
	return out
}

func latencyOf(h *hdrhistogram.Histogram) *jsonLatency {
	if recorded(h) == 0 {
		return nil
	}
	q := h.ValueAtPercentilesSlice([]float64{50, 75, 90, 95, 99, 99.9, 99.99})
	return &jsonLatency{
		Count: h.TotalCount(), Min: h.Min(), Mean: h.Mean(), Stddev: h.StdDev(),
		P50: q[0], P75: q[1], P90: q[2], P95: q[3], P99: q[4], P999: q[5], P9999: q[6], Max: h.Max(),
	}
}
