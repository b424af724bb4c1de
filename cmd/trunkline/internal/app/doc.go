// Package app wires one server: settings in, listeners, protocols and the admin endpoint out. It is
// the only place that knows how the rooms are connected; endpoint.go knows the kernel endpoint,
// web.go the envelope exchange over HTTP, metrics.go the names under which counters are shown.
//
// The life of a server:
//
//	bind everything ─► banner ─► admin up ─► recover ─► serve ─► ready ─► signal ─► not ready ─► drain ─► admin down ─► return
//
// Every address is bound before the store is read, so that one in use is an error at once; clients
// that connect meanwhile wait in the backlog. The admin listener answers from before the recovery,
// which it shows, until after the drain, so that probes see it and the last scrape still counts it.
package app
