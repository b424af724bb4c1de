package config

import (
	"fmt"
	"slices"
)

// validate checks what single ranges cannot see.
func (c *Config) validate() Problems {
	var p Problems
	if c.Store.Mode != StoreMemory && c.Store.Dir == "" {
		p = append(p, fmt.Sprintf("cannot use store.dir = \"\": store.mode is %s", c.Store.Mode))
	}
	if c.Store.Mode != StoreMemory && c.Kernel.MaxFrameBytes > maxStoredFrame {
		p = append(p, fmt.Sprintf("cannot use kernel.max_frame_bytes = %d: store.mode is %s, where it is at most %d, so that a change fits a record",
			c.Kernel.MaxFrameBytes, c.Store.Mode, maxStoredFrame))
	}
	if k := &c.Kernel; k.DefaultQueryTimeoutMs > k.MaxQueryTimeoutMs {
		p = append(p, fmt.Sprintf("cannot use kernel.default_query_timeout_ms = %d: it is above kernel.max_query_timeout_ms = %d",
			k.DefaultQueryTimeoutMs, k.MaxQueryTimeoutMs))
	}
	p = append(p, c.Kernel.check()...)
	p = append(p, c.HTTP.check()...)
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

// checkStages refuses what an envelope's own stage_order must not have either (envelope §3.2).
func checkStages(order []string) Problems {
	for i, name := range order {
		if slices.Contains(order[:i], name) {
			return Problems{fmt.Sprintf("cannot use http.default_stage_order: %q is in it twice", name)}
		}
	}
	return nil
}
