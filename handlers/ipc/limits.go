package ipc

import "time"

// Limits are the fields of Config that a running service can change.
type Limits struct {
	MaxConnections                       int
	DefaultQueryTimeout, MaxQueryTimeout time.Duration
	MaxStreamsPerConnection              int
	MaxEventTypes                        int
}

// SetLimits changes the limits for what is asked from now on. None is zero.
func (s *Service) SetLimits(l Limits) { s.limits.Store(&l) }

// limits returns those of c.
func (c *Config) limits() Limits {
	return Limits{
		MaxConnections: c.MaxConnections, DefaultQueryTimeout: c.DefaultQueryTimeout, MaxQueryTimeout: c.MaxQueryTimeout,
		MaxStreamsPerConnection: c.MaxStreamsPerConnection, MaxEventTypes: c.MaxEventTypes,
	}
}
