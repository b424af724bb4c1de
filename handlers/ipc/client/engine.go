package client

import (
	"context"

	"github.com/tinylib/msgp/msgp"
)

const (
	engineService        = "engine"
	orchestrationService = "orchestration"
)

// CreateEnvelope stores a new envelope and returns it, nested (envelope §4.5).
func (c *Conn) CreateEnvelope(ctx context.Context, in CreateEnvelope) (envelope msgp.Raw, err error) {
	err = c.invoke(ctx, engineService, "CreateEnvelope", &in, &envelope)
	return envelope, err
}

// CheckBounds compares an envelope's counters with its limits and stores nothing (envelope §4.6). The envelope is the whole body.
func (c *Conn) CheckBounds(ctx context.Context, envelope msgp.Raw) (out Bounds, err error) {
	err = c.invoke(ctx, engineService, "CheckBounds", envelope, &out)
	return out, err
}

// UpdateEnvelope replaces a stored envelope as a whole; one that is no longer waiting resolves the interrupt of the sessions
// that hold it (envelope §4.7).
func (c *Conn) UpdateEnvelope(ctx context.Context, envelope msgp.Raw) (stored msgp.Raw, err error) {
	err = c.invoke(ctx, engineService, "UpdateEnvelope", &envelopeInput{Envelope: envelope}, &stored)
	return stored, err
}

// ExecutePipeline begins a session under the envelope's id and returns its first instruction (envelope §4.8).
func (c *Conn) ExecutePipeline(ctx context.Context, envelope, pipeline msgp.Raw) (out Instruction, err error) {
	err = c.invoke(ctx, engineService, "ExecutePipeline", &executeInput{Envelope: envelope, Pipeline: pipeline}, &out)
	return out, err
}

// CloneEnvelope stores a copy of an envelope under a generated id and returns it (envelope §4.9).
func (c *Conn) CloneEnvelope(ctx context.Context, envelope msgp.Raw) (clone msgp.Raw, err error) {
	err = c.invoke(ctx, engineService, "CloneEnvelope", &envelopeInput{Envelope: envelope}, &clone)
	return clone, err
}

// InitializeSession begins a session (envelope §4.10). Without Force an existing one is an *Error of wire.InvalidArgument.
func (c *Conn) InitializeSession(ctx context.Context, in InitializeSession) (out SessionState, err error) {
	err = c.invoke(ctx, orchestrationService, "InitializeSession", &in, &out)
	return out, err
}

// GetNextInstruction says what to do next; asking again without a report gives the same answer (envelope §4.11).
func (c *Conn) GetNextInstruction(ctx context.Context, processID string) (out Instruction, err error) {
	err = c.invoke(ctx, orchestrationService, "GetNextInstruction", &processInput{ProcessID: processID}, &out)
	return out, err
}

// ReportAgentResult hands in what an agent made and returns the next instruction (envelope §4.12).
func (c *Conn) ReportAgentResult(ctx context.Context, in AgentResult) (out Instruction, err error) {
	err = c.invoke(ctx, orchestrationService, "ReportAgentResult", &in, &out)
	return out, err
}

// GetSessionState shows a session without counting as activity (envelope §4.13).
func (c *Conn) GetSessionState(ctx context.Context, processID string) (out SessionState, err error) {
	err = c.invoke(ctx, orchestrationService, "GetSessionState", &processInput{ProcessID: processID}, &out)
	return out, err
}
