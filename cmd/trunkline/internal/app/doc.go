// Package app wires one server: settings in, listeners, protocols and the admin endpoint out. It is the only place that knows
// how the rooms are connected; endpoint.go knows the kernel endpoint, web.go the envelope exchange over HTTP, metrics.go the names under
// which counters are shown.
//
// The life of a server:
//
//	bind everything ─► banner ─► serve ─► ready ─► signal ─► not ready ─► drain ─► admin down ─► return
//
// The admin listener outlives the drain, so that probes see it and the last scrape still counts it.
package app
