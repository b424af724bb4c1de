package app

import (
	"trunkline/engine/exacta"
	"trunkline/engine/obs"
	handler "trunkline/handlers/exacta"
)

// projectStats is what one reading of projects gives.
type projectStats struct {
	handler.Stats
	refused int64
}

// projectMetrics are those of projects.
var projectMetrics = []metric[projectStats]{
	{Family: obs.Family{Name: "trunkline_exacta_sessions", Help: "Open connections of projects, by carrier.", Kind: obs.Gauge, Labels: []string{"carrier"}},
		series: func(s *projectStats, put putSeries) {
			for carrier, n := range s.Sessions {
				put(float64(n), handler.Carrier(carrier).String())
			}
		}},
	counter("trunkline_exacta_connections_refused_total", "Connections of projects turned away: over the limit, a unix peer of another user, a WebSocket of another origin or without the token.",
		func(s *projectStats) float64 { return float64(s.refused) }),
	{Family: obs.Family{Name: "trunkline_exacta_requests_total", Labels: []string{"command", "code"},
		Help: "Messages answered, by command and error code; the command is empty for what cannot be read, the code for what went well."},
		series: func(s *projectStats, put putSeries) {
			for _, r := range s.Requests {
				put(float64(r.Count), r.Command, r.Code)
			}
		}},
	counter("trunkline_exacta_repeats_total", "Requests that got the answer of an earlier one with the same id.",
		func(s *projectStats) float64 { return float64(s.Repeats) }),
	counter("trunkline_exacta_events_total", "Events of all projects, each counted once.",
		func(s *projectStats) float64 { return float64(s.Events.Load()) }),
	{Family: obs.Family{Name: "trunkline_exacta_projects", Help: "Open projects, by state.", Kind: obs.Gauge, Labels: []string{"state"}},
		series: func(s *projectStats, put putSeries) {
			for _, state := range exacta.States() {
				put(float64(s.Projects[state]), state.String())
			}
		}},
	{Family: obs.Family{Name: "trunkline_exacta_transitions_total", Help: "Transitions of projects, by the state they led to: Executing counts executions that began or went on.", Labels: []string{"state"}},
		series: func(s *projectStats, put putSeries) {
			for _, state := range exacta.States() {
				put(float64(s.Entered(state)), state.String())
			}
		}},
	{Family: obs.Family{Name: "trunkline_exacta_steps_total", Help: "Steps of executions that ended, by result: done, failed.", Labels: []string{"result"}},
		series: func(s *projectStats, put putSeries) {
			put(float64(s.StepsDone.Load()), "done")
			put(float64(s.StepsFailed.Load()), "failed")
		}},
	{Family: obs.Family{Name: "trunkline_exacta_planner_requests_total", Help: "Questions to an external planner, answers of its cache included, by error code; empty for what went well.", Labels: []string{"code"}},
		series: func(s *projectStats, put putSeries) {
			for _, r := range s.Planner {
				put(float64(r.Count), r.Code)
			}
		}},
}

// register adds the metrics of projects.
func (e *projectEndpoint) register(reg *obs.Registry) error {
	return addMetrics(reg, projectMetrics, func() *projectStats {
		return &projectStats{Stats: e.srv.Stats(), refused: e.refused()}
	})
}
