package benchview

import (
	"fmt"
	"io"
	"strconv"
	"strings"
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

// Lines writes one line per interval, for logs and pipes: the same members in the same order on
// every line, name=value, with the unit in the name and no space in a value. A number that does not
// exist, such as the p99 of no answers, is "-".
//
//	bench phase=measure t_s=3.000 due_per_second=1000 sent_per_second=1000 done_per_second=998 failed_per_second=2 in_flight=3
//	  connections_lost=0 late_replies=1 p50_us=412.3 p90_us=633.1 p99_us=1204.2 p999_us=3411.0 max_us=8020.0 errors=timeout:2
//
// (one line). phase is warmup or measure, t_s the end of the interval in seconds since the start of
// measuring, negative before it; connections_lost and late_replies are those of the interval;
// errors counts its failures by code, the most frequent first, with "_" for spaces, "=", ":" and
// ",".
type Lines struct {
	w io.Writer
}

// NewLines returns Lines on w, after one line with the target and the load: "bench phase=start
// …".
func NewLines(w io.Writer, p loadgen.Plan) *Lines {
	duration := nothing
	if p.Timed() {
		duration = decimal(p.Duration.Seconds(), 3)
	}
	fmt.Fprintf(w, "bench phase=start protocol=%s target=%s schedule=%s from_per_second=%s to_per_second=%s connections=%d depth=%d"+
		" warmup_s=%s duration_s=%s count=%d interval_s=%s\n",
		value(p.Target.Protocol), value(address(p.Target)), kind(p.Schedule.Kind), decimal(p.Schedule.From, 0), decimal(p.Schedule.To, 0),
		p.Conns, p.Depth, decimal(p.Warmup.Seconds(), 3), duration, p.Count, decimal(p.Interval.Seconds(), 3))
	return &Lines{w: w}
}

// Show writes the line of one interval. It is for one goroutine.
func (l *Lines) Show(s loadgen.Sample) {
	var b strings.Builder
	phase := "measure"
	if s.From < 0 {
		phase = "warmup"
	}
	fmt.Fprintf(&b, "bench phase=%s t_s=%s", phase, decimal(s.To.Seconds(), 3))
	for _, c := range []counted{{"due", s.Due}, {"sent", s.Sent}, {"done", s.Done}, {"failed", s.Failed}} {
		fmt.Fprintf(&b, " %s_per_second=%s", c.name, decimal(perSecond(c.n, s.To-s.From), 0))
	}
	fmt.Fprintf(&b, " in_flight=%d connections_lost=%d late_replies=%d", s.InFlight, s.Lost, s.Late)
	ns, ok := latencies(s.Latency)
	for i, name := range quantileNames {
		text := nothing
		if ok {
			text = decimal(float64(ns[i])/1e3, 1)
		}
		fmt.Fprintf(&b, " %s_us=%s", strings.ReplaceAll(name, ".", ""), text)
	}
	b.WriteString(" errors=" + errorsValue(s.Errors) + "\n")
	_, _ = io.WriteString(l.w, b.String())
}

// Close does nothing: every line is complete. It is there so that Lines can stand where Live does.
func (l *Lines) Close() {}

func errorsValue(errs map[string]int64) string {
	kinds := byCount(errs)
	if len(kinds) == 0 {
		return nothing
	}
	texts := make([]string, len(kinds))
	for i, k := range kinds {
		texts[i] = strings.ReplaceAll(value(k.name), ":", "_") + ":" + strconv.FormatInt(k.n, 10)
	}
	return strings.Join(texts, ",")
}

// value makes s one word that no reader of name=value takes apart.
func value(s string) string {
	if s == "" {
		return nothing
	}
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '=' || r == ',' || r == '"' {
			return '_'
		}
		return r
	}, clean(s))
}

// decimal has no exponent and no thousands apart.
func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

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
