package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// projectView is a project with its plan, as its kept events report it.
type projectView struct {
	Project
	// Plan is the last one proposed among the events; nil if there is none.
	Plan *planView `json:"plan"`
	// Events are the last ones, newest first.
	Events    []projectEvent `json:"events"`
	Done      string         `json:"-"`
	CanCancel bool           `json:"-"`
}

// planView is a plan and how far it is.
type planView struct {
	ID      string     `json:"plan_id"`
	Version int        `json:"version"`
	At      time.Time  `json:"proposed_at"`
	Steps   []stepView `json:"steps"`
}

// stepView is a step of a plan.
type stepView struct {
	ID          string `json:"step_id"`
	Order       int    `json:"order"`
	Type        string `json:"type"`
	Target      string `json:"target"`
	Description string `json:"description"`
	// Result is "waiting", "running", "done in …" or "failed".
	Result string `json:"result"`
}

// projectEvent is an event of a project.
type projectEvent struct {
	Seq    uint64    `json:"stream_seq"`
	At     time.Time `json:"sent_at"`
	Name   string    `json:"event"`
	Detail string    `json:"detail"`
}

// wireEvent is what the pages take from an event (exacta §3.4).
type wireEvent struct {
	Event   string          `json:"event"`
	At      time.Time       `json:"sent_at"`
	Seq     uint64          `json:"stream_seq"`
	Payload json.RawMessage `json:"payload"`
}

// newProjectView reads the events of a project.
func newProjectView(p *ProjectDetail) *projectView {
	v := &projectView{Project: p.Project, Events: []projectEvent{}}
	for _, raw := range p.Events {
		var e wireEvent
		if json.Unmarshal(raw, &e) != nil {
			continue // of another version
		}
		v.follow(&e)
		v.Events = append(v.Events, projectEvent{e.Seq, e.At, e.Event, oneLine(e.Payload)})
	}
	slices.Reverse(v.Events)
	return v
}

// follow takes what an event means for the plan.
func (v *projectView) follow(e *wireEvent) {
	switch e.Event {
	case "PlanProposed":
		var payload struct {
			Plan struct {
				ID      string `json:"id"`
				Version int    `json:"version"`
				Steps   []struct {
					ID          string `json:"id"`
					Order       int    `json:"order"`
					Type        string `json:"type"`
					Target      string `json:"target"`
					Description string `json:"description"`
				} `json:"steps"`
			} `json:"plan"`
		}
		if json.Unmarshal(e.Payload, &payload) != nil {
			return
		}
		v.Plan = &planView{ID: payload.Plan.ID, Version: payload.Plan.Version, At: e.At, Steps: []stepView{}}
		for _, s := range payload.Plan.Steps {
			v.Plan.Steps = append(v.Plan.Steps, stepView{s.ID, s.Order, s.Type, s.Target, s.Description, "waiting"})
		}
	case "StepStarted", "StepCompleted":
		var payload struct {
			StepID     string `json:"step_id"`
			OK         bool   `json:"ok"`
			DurationMS int64  `json:"duration_ms"`
		}
		if v.Plan == nil || json.Unmarshal(e.Payload, &payload) != nil {
			return
		}
		result := "running"
		switch {
		case e.Event == "StepCompleted" && payload.OK:
			result = fmt.Sprintf("done in %d ms", payload.DurationMS)
		case e.Event == "StepCompleted":
			result = "failed"
		}
		for i := range v.Plan.Steps {
			if v.Plan.Steps[i].ID == payload.StepID {
				v.Plan.Steps[i].Result = result
			}
		}
	}
}
