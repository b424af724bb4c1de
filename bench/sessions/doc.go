//go:build linux

// Package sessions begins far more orchestration sessions (-rows) than a server with default
// settings holds, each with an envelope of 64 KiB: is its memory bounded, and is every refusal the
// one that the contract names?
//
// Two servers, one after the other. The first is given sessions that go on: the table fills, and
// all further ones are refused with RESOURCE_EXHAUSTED, "Session table is full", retryable; the
// sessions held still answer. The second is given sessions that have ended: each takes the place of
// one that was idle for longest, and none is refused (envelope §5.3).
package sessions
