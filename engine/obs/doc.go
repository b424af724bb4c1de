// Package obs is what the engine shows of itself: structured logs, build information and a metrics
// registry.
//
// Nothing here is global. A process that runs two engines has two registries, and each scrape reads
// only its own. Hot paths count in atomics of their own; the registry reads those through func
// values when it is scraped, so that a request pays nothing for being watched.
//
// Metric names start with "trunkline_", carry base units (_seconds, _bytes) and end in _total when
// they only grow. Labels have few values: a protocol, a method, a wire code; never a process, user
// or address.
package obs
