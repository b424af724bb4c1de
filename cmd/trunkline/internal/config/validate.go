package config

import (
	"fmt"
	"slices"
)

// validate checks what single ranges cannot see.
func (c *Config) validate() problems {
	var p problems
	p = append(p, c.checkStore()...)
	if k := &c.Kernel; k.DefaultQueryTimeoutMs > k.MaxQueryTimeoutMs {
		p = append(p, fmt.Sprintf("cannot use kernel.default_query_timeout_ms = %d: it is above kernel.max_query_timeout_ms = %d",
			k.DefaultQueryTimeoutMs, k.MaxQueryTimeoutMs))
	}
	p = append(p, c.Kernel.check()...)
	p = append(p, c.HTTP.check()...)
	p = append(p, c.Toolhost.check()...)
	p = append(p, checkStages(c.HTTP.DefaultStageOrder)...)
	if a := c.Admin; a.ListenAddr != "" {
		loop, err := isLoopback(a.ListenAddr)
		if err != nil {
			p = append(p, fmt.Sprintf("cannot use admin.listen_addr = %q: %v", a.ListenAddr, err))
		} else if !loop && !a.InsecureBind {
			p = append(p, fmt.Sprintf("cannot use admin.listen_addr = %q: it is not a loopback address, and admin.insecure_bind is false", a.ListenAddr))
		}
	}
	return p
}

// checkStore refuses what a server cannot do with its store, with what to do about it. A
// store.mode that was not chosen has one too.
func (c *Config) checkStore() problems {
	mode := fmt.Sprintf("store.mode is %s (%s)", c.Store.Mode, c.origins[keyStoreMode])
	switch {
	case c.Store.Mode == StoreMemory:
		return nil
	case c.dev:
		return problems{fmt.Sprintf("cannot use --dev: %s, and --dev keeps nothing; leave one of the two out", mode)}
	}
	var p problems
	if c.Store.Dir == "" {
		p = append(p, fmt.Sprintf("cannot use store.dir = \"\": %s; name a directory, or keep nothing with store.mode=memory", mode))
	}
	if c.Kernel.MaxFrameBytes > maxStoredFrame {
		p = append(p, fmt.Sprintf("cannot use kernel.max_frame_bytes = %d: %s, where a change must fit a record; lower it to %d, or keep nothing with store.mode=memory",
			c.Kernel.MaxFrameBytes, mode, maxStoredFrame))
	}
	return p
}

// checkStages refuses what an envelope's own stage_order must not have either (envelope §3.2).
func checkStages(order []string) problems {
	for i, name := range order {
		if slices.Contains(order[:i], name) {
			return problems{fmt.Sprintf("cannot use http.default_stage_order: %q is in it twice", name)}
		}
	}
	return nil
}
