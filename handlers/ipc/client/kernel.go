package client

import (
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

const kernelService = "kernel"

// invoke is Call between two typed maps; a nil in is an empty map.
func (c *Conn) invoke(ctx context.Context, service, method string, in msgp.Marshaler, out msgp.Unmarshaler) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = in.MarshalMsg(nil); err != nil {
			return fmt.Errorf("cannot encode the body of %s.%s: %w", service, method, err)
		}
	}
	reply, err := c.Call(ctx, service, method, body)
	if err != nil {
		return err
	}
	if _, err := out.UnmarshalMsg(reply); err != nil {
		return protocolErrorf("reply of %s.%s: %v", service, method, err)
	}
	return nil
}

func (c *Conn) process(ctx context.Context, method string, in msgp.Marshaler) (p Process, err error) {
	err = c.invoke(ctx, kernelService, method, in, &p)
	return p, err
}

// CreateProcess stores a process; the reply shows it as NEW (kernel-ipc §4.1).
func (c *Conn) CreateProcess(ctx context.Context, in CreateProcess) (Process, error) {
	return c.process(ctx, "CreateProcess", &in)
}

// GetProcess returns one process (kernel-ipc §4.2).
func (c *Conn) GetProcess(ctx context.Context, pid string) (Process, error) {
	return c.process(ctx, "GetProcess", &pidInput{PID: pid})
}

// ScheduleProcess makes a NEW process READY (kernel-ipc §4.3).
func (c *Conn) ScheduleProcess(ctx context.Context, pid string) (Process, error) {
	return c.process(ctx, "ScheduleProcess", &pidInput{PID: pid})
}

// GetNextRunnable takes the best READY process off the queue; start moves it to RUNNING in the same step (kernel-ipc §4.4).
// An empty queue is an *Error of wire.NotFound.
func (c *Conn) GetNextRunnable(ctx context.Context, start bool) (Process, error) {
	return c.process(ctx, "GetNextRunnable", &nextInput{Start: start})
}

// TransitionState moves a process along the state table (kernel-ipc §4.5).
func (c *Conn) TransitionState(ctx context.Context, pid, newState, reason string) (Process, error) {
	return c.process(ctx, "TransitionState", &transitionInput{PID: pid, NewState: newState, Reason: reason})
}

// TerminateProcess ends a process; ending it again changes nothing (kernel-ipc §4.6).
func (c *Conn) TerminateProcess(ctx context.Context, pid, reason string) (Process, error) {
	return c.process(ctx, "TerminateProcess", &terminateInput{PID: pid, Reason: reason})
}

// CheckQuota compares a process's usage with its quota (kernel-ipc §4.7).
func (c *Conn) CheckQuota(ctx context.Context, pid string) (out QuotaCheck, err error) {
	err = c.invoke(ctx, kernelService, "CheckQuota", &pidInput{PID: pid}, &out)
	return out, err
}

// RecordUsage adds to a process's counters and returns the new totals (kernel-ipc §4.8).
func (c *Conn) RecordUsage(ctx context.Context, pid string, delta UsageDelta) (out Usage, err error) {
	err = c.invoke(ctx, kernelService, "RecordUsage", &usageInput{PID: pid, UsageDelta: delta}, &out)
	return out, err
}

// CheckRateLimit asks whether a user may make one more request, and counts it when allowed and record is true
// (kernel-ipc §4.9).
func (c *Conn) CheckRateLimit(ctx context.Context, userID string, record bool) (out RateDecision, err error) {
	err = c.invoke(ctx, kernelService, "CheckRateLimit", &rateInput{UserID: userID, Record: record}, &out)
	return out, err
}

// ListProcesses returns the processes a filter selects, or one page of them (kernel-ipc §4.10).
func (c *Conn) ListProcesses(ctx context.Context, in ListProcesses) (out ProcessPage, err error) {
	err = c.invoke(ctx, kernelService, "ListProcesses", &in, &out)
	return out, err
}

// GetProcessCounts counts the processes by state (kernel-ipc §4.11).
func (c *Conn) GetProcessCounts(ctx context.Context) (out Counts, err error) {
	err = c.invoke(ctx, kernelService, "GetProcessCounts", nil, &out)
	return out, err
}

// SetQuotaDefaults overwrites the limits named with a value above 0 and returns all in force (kernel-ipc §4.12).
func (c *Conn) SetQuotaDefaults(ctx context.Context, patch QuotaPatch) (out Quota, err error) {
	err = c.invoke(ctx, kernelService, "SetQuotaDefaults", &quotaInput{Quota: patch}, &out)
	return out, err
}

// GetQuotaDefaults returns the default quota in force (kernel-ipc §4.13).
func (c *Conn) GetQuotaDefaults(ctx context.Context) (out Quota, err error) {
	err = c.invoke(ctx, kernelService, "GetQuotaDefaults", nil, &out)
	return out, err
}

// GetSystemStatus returns the server's counters (kernel-ipc §4.14).
func (c *Conn) GetSystemStatus(ctx context.Context) (out Status, err error) {
	err = c.invoke(ctx, kernelService, "GetSystemStatus", nil, &out)
	return out, err
}
