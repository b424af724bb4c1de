package app

import (
	"errors"
	"slices"
	"strconv"

	"trunkline/engine/cluster/control"
	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/handlers/exchange"
	"trunkline/handlers/ipc"
	"trunkline/handlers/ipc/route"
	"trunkline/handlers/toolhost"
)

// metric is a family with what a reading gives it: value if it is one number, series if it has
// labels, or no number at times.
type metric[S any] struct {
	obs.Family
	value  func(s *S) float64
	series func(s *S, put putSeries)
}

// putSeries puts one series of a family.
type putSeries func(value float64, labels ...string)

func counter[S any](name, help string, value func(*S) float64) metric[S] {
	return metric[S]{Family: obs.Family{Name: name, Help: help}, value: value}
}

func gauge[S any](name, help string, value func(*S) float64) metric[S] {
	return metric[S]{Family: obs.Family{Name: name, Help: help, Kind: obs.Gauge}, value: value}
}

// addMetrics registers metrics that come from one reading. A reading that is nil shows nothing.
func addMetrics[S any](reg *obs.Registry, metrics []metric[S], read func() *S) error {
	families := make([]obs.Family, len(metrics))
	for i := range metrics {
		families[i] = metrics[i].Family
	}
	return reg.AddGroup(families, func(put obs.Put) { putMetrics(metrics, read(), put) })
}

// putMetrics shows one reading, nothing where s is nil.
func putMetrics[S any](metrics []metric[S], s *S, put obs.Put) {
	if s == nil {
		return
	}
	for i := range metrics {
		m := &metrics[i]
		if m.value != nil {
			put(i, m.value(s))
			continue
		}
		m.series(s, func(value float64, labels ...string) { put(i, value, labels...) })
	}
}

// serviceMetrics are those of the kernel endpoint.
var serviceMetrics = []metric[ipc.Stats]{
	{Family: obs.Family{Name: "trunkline_ipc_calls_total", Labels: []string{"service", "method", "code"},
		Help: "Requests answered, by method and wire code; both names empty for frames that reached no method."},
		series: func(s *ipc.Stats, put putSeries) {
			for _, c := range s.Calls {
				put(float64(c.Count), c.Service, c.Method, c.Code.String())
			}
		}},
	{Family: obs.Family{Name: "trunkline_processes", Help: "Processes in the table, by state.", Kind: obs.Gauge, Labels: []string{"state"}},
		series: func(s *ipc.Stats, put putSeries) {
			for state, n := range s.Counts.ByState {
				put(float64(n), kernel.State(state).String())
			}
		}},
	gauge("trunkline_ready_queue_processes", "Processes waiting in the ready queue, leased ones left out.",
		func(s *ipc.Stats) float64 { return float64(s.Counts.QueueDepth) }),
	counter("trunkline_bus_events_published_total", "Events published, lifecycle events included, with or without a subscriber.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.EventsPublished) }),
	counter("trunkline_bus_commands_sent_total", "Commands accepted by a handler's buffer.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.CommandsSent) }),
	counter("trunkline_bus_queries_executed_total", "Queries answered by a handler.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.QueriesExecuted) }),
	counter("trunkline_bus_events_dropped_total", "Events a full subscription did not take, counted once per subscription.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.DroppedEvents) }),
	gauge("trunkline_bus_subscribers", "Live Subscribe streams.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.ActiveSubscribers) }),
	gauge("trunkline_bus_pending_queries", "Queries waiting for their handler's answer.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.PendingQueries) }),
	gauge("trunkline_bus_buffered_bytes", "Bytes of messages held for streams, a shared message counted once.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.BufferedBytes) }),
	gauge("trunkline_bus_name_bytes", "Bytes of the names that streams list, and 128 for each.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.NameBytes) }),
	gauge("trunkline_bus_patterns", "Patterns of all streams.",
		func(s *ipc.Stats) float64 { return float64(s.Bus.Patterns) }),
	gauge("trunkline_orchestration_sessions", "Orchestration sessions held, ended ones included.",
		func(s *ipc.Stats) float64 { return float64(s.Orch.Sessions) }),
	gauge("trunkline_orchestration_session_bytes", "Bytes held by orchestration sessions.",
		func(s *ipc.Stats) float64 { return float64(s.Orch.SessionBytes) }),
	gauge("trunkline_envelopes", "Envelopes in the store.",
		func(s *ipc.Stats) float64 { return float64(s.Orch.Envelopes) }),
	gauge("trunkline_envelope_bytes", "Bytes held by envelopes in the store.",
		func(s *ipc.Stats) float64 { return float64(s.Orch.EnvelopeBytes) }),
	gauge("trunkline_idempotency_keys", "Idempotency keys of kernel IPC requests.",
		func(s *ipc.Stats) float64 { return float64(s.IdempotencyKeys) }),
	gauge("trunkline_idempotency_bytes", "Bytes of the answers held for idempotency keys of kernel IPC requests.",
		func(s *ipc.Stats) float64 { return float64(s.IdempotencyBytes) }),
}

// socketMetrics are those of the connections of the kernel endpoint.
var socketMetrics = []metric[stream.Snapshot]{
	counter("trunkline_connections_accepted_total", "Connections that got a slot.",
		func(s *stream.Snapshot) float64 { return float64(s.Accepted) }),
	counter("trunkline_connections_refused_total", "Connections turned away: over the limit, or a unix peer of another user.",
		func(s *stream.Snapshot) float64 { return float64(s.Refused) }),
	gauge("trunkline_connections_open", "Connections holding a slot.",
		func(s *stream.Snapshot) float64 { return float64(s.Open) }),
	{Family: obs.Family{Name: "trunkline_connections_closed_total", Help: "Connections closed, by reason.", Labels: []string{"reason"}},
		series: func(s *stream.Snapshot, put putSeries) {
			for r, n := range s.Closed {
				put(float64(n), connection.Reason(r).String())
			}
		}},
	{Family: obs.Family{Name: "trunkline_connections_left_loop_total", Labels: []string{"cause"},
		Help: "Connections that moved from an event loop to goroutines, by cause."},
		series: func(s *stream.Snapshot, put putSeries) {
			for d, n := range s.Left {
				put(float64(n), stream.Departure(d).String())
			}
		}},
	counter("trunkline_received_bytes_total", "Bytes read from connections.",
		func(s *stream.Snapshot) float64 { return float64(s.BytesIn) }),
	counter("trunkline_sent_bytes_total", "Bytes written to connections.",
		func(s *stream.Snapshot) float64 { return float64(s.BytesOut) }),
}

// webMetrics are those of the envelope exchange over HTTP.
var webMetrics = []metric[exchange.Stats]{
	{Family: obs.Family{Name: "trunkline_http_requests_total", Help: "HTTP requests answered, by class of status.", Labels: []string{"class"}},
		series: func(s *exchange.Stats, put putSeries) {
			for class := 2; class < len(s.Requests); class++ { // nothing is answered 1xx
				put(float64(s.Requests[class]), strconv.Itoa(class)+"xx")
			}
		}},
	gauge("trunkline_http_requests_in_flight", "HTTP requests being read or answered, refused ones left out.",
		func(s *exchange.Stats) float64 { return float64(s.InFlight) }),
	gauge("trunkline_http_connections_open", "Open HTTP connections.",
		func(s *exchange.Stats) float64 { return float64(s.Connections) }),
}

// storeReading is what the metrics of the store come from.
type storeReading struct {
	*journal.Log
	stats journal.Stats
	disk  embedded.Stats
	last  *lastSnapshot // nil if there is none
}

// storeMetrics are those of the store.
var storeMetrics = []metric[storeReading]{
	gauge("trunkline_store_queue_bytes", "Bytes of records that wait to be written, the group being written included.",
		func(s *storeReading) float64 { return float64(s.stats.QueueBytes) }),
	gauge("trunkline_store_queue_records", "Records that wait to be written, the group being written included.",
		func(s *storeReading) float64 { return float64(s.stats.QueueRecords) }),
	counter("trunkline_store_groups_total", "Groups of records written, each with one write and in mode always one sync.",
		func(s *storeReading) float64 { return float64(s.stats.Groups) }),
	counter("trunkline_store_records_total", "Records written.",
		func(s *storeReading) float64 { return float64(s.stats.Records) }),
	counter("trunkline_store_bytes_total", "Bytes of groups written.",
		func(s *storeReading) float64 { return float64(s.stats.Bytes) }),
	gauge("trunkline_store_appended_index", "Index of the last record decided.",
		func(s *storeReading) float64 { return float64(s.Appended()) }),
	gauge("trunkline_store_durable_index", "Index up to which records are as safe as store.mode says.",
		func(s *storeReading) float64 { return float64(s.Durable()) }),
	gauge("trunkline_store_epoch", "Which start of a server on this store this is; 0 during recovery.",
		func(s *storeReading) float64 { return float64(s.Epoch()) }),
	gauge("trunkline_store_overloaded", "1 while so much waits to be written that changes are refused.",
		func(s *storeReading) float64 { return oneIf(s.Overloaded()) }),
	counter("trunkline_store_snapshots_total", "Snapshots written and verified.",
		func(s *storeReading) float64 { return float64(s.stats.Snapshots) }),
	counter("trunkline_store_snapshot_bytes_total", "Bytes of snapshots written.",
		func(s *storeReading) float64 { return float64(s.stats.SnapshotBytes) }),
	{Family: obs.Family{Name: "trunkline_store_last_snapshot_index", Help: "Index of the newest snapshot; nothing where there is none.", Kind: obs.Gauge},
		series: func(s *storeReading, put putSeries) {
			if s.last != nil {
				put(float64(s.last.index))
			}
		}},
	{Family: obs.Family{Name: "trunkline_store_last_snapshot_timestamp_seconds", Help: "When the newest snapshot was complete, in seconds since 1970.", Kind: obs.Gauge},
		series: func(s *storeReading, put putSeries) {
			if s.last != nil {
				put(float64(s.last.at.UnixNano()) / 1e9)
			}
		}},
	gauge("trunkline_store_disk_bytes", "Bytes that the journal and the rows take on the disk, laid out ahead included.",
		func(s *storeReading) float64 { return float64(s.disk.DiskBytes) }),
	gauge("trunkline_store_wal_bytes", "Bytes that log files take on the disk, laid out ahead included.",
		func(s *storeReading) float64 { return float64(s.disk.WALBytes) }),
	gauge("trunkline_store_table_bytes", "Bytes of SSTables in store.dir.",
		func(s *storeReading) float64 { return float64(s.disk.TableBytes) }),
	gauge("trunkline_store_tables", "Sorted files in store.dir.",
		func(s *storeReading) float64 { return float64(s.disk.Tables) }),
	gauge("trunkline_store_memtable_bytes", "Bytes in memory that wait for their SSTable.",
		func(s *storeReading) float64 { return float64(s.disk.MemTableBytes) }),
	counter("trunkline_store_flushed_bytes_total", "Bytes of SSTables written from memory.",
		func(s *storeReading) float64 { return float64(s.disk.FlushedBytes) }),
	counter("trunkline_store_compacted_bytes_total", "Bytes of SSTables written by merging others.",
		func(s *storeReading) float64 { return float64(s.disk.CompactedBytes) }),
	{Family: obs.Family{Name: "trunkline_store_free_bytes", Help: "Free bytes of the disk of store.dir; nothing where it is not known.", Kind: obs.Gauge},
		series: func(s *storeReading, put putSeries) {
			if s.disk.FreeBytes > 0 {
				put(float64(s.disk.FreeBytes))
			}
		}},
	gauge("trunkline_store_full", "1 while changes are refused because the disk has no room.",
		func(s *storeReading) float64 { return oneIf(s.disk.Full) }),
	gauge("trunkline_store_unsynced_seconds", "Age of the oldest change that was written and not synced yet, in mode interval.",
		func(s *storeReading) float64 { return s.disk.Unsynced.Seconds() }),
	counter("trunkline_store_held_groups_total", "Groups whose replies were held because what was not synced was too old, in mode interval.",
		func(s *storeReading) float64 { return float64(s.disk.HeldBlocks) }),
}

// register adds the metrics of all parts. Those of a store show nothing until it is open; in mode
// memory there are none.
func (s *server) register(reg *obs.Registry) error {
	err := errors.Join(
		addReplicas(s, reg, serviceMetrics, (*replica).stats),
		addReplicas(
			s,
			reg,
			socketMetrics,
			func(r *replica) *stream.Snapshot { st := r.kernel.loops.Stats(); return &st },
		),
		addReplicas(s, reg, threadMetrics, (*replica).threadStats),
		s.registerLatency(reg, s.options.recorder),
		s.registerWebhooks(reg),
	)
	if dropped := s.options.LinesDropped; dropped != nil {
		err = errors.Join(err, reg.AddGroup([]obs.Family{{Name: "trunkline_log_lines_dropped_total", Help: "Lines of the log that could not be written."}},
			func(put obs.Put) { put(0, float64(dropped())) }))
	}
	if s.first().tools != nil {
		err = errors.Join(err, addMetrics(reg, toolMetrics, func() *toolhost.Stats { st := s.first().tools.srv.Stats(); return &st }))
	}
	if c := s.options.cluster; c != nil {
		err = errors.Join(err,
			addReplicas(s, reg, leaseMetrics, s.readLease),
			addMetrics(reg, nodeMetrics, func() *control.Node { return c }))
	}
	if s.router != nil {
		err = errors.Join(err, addMetrics(reg, routerMetrics, func() *route.Stats { st := s.router.Stats(); return &st }))
	}
	if s.router != nil && s.router.web != nil {
		err = errors.Join(err, addMetrics(reg, routedThreadMetrics, func() *routing { return s.router }))
	}
	if s.first().kernel.store == nil {
		return err
	}
	return errors.Join(err,
		addReplicas(s, reg, storeMetrics, func(r *replica) *storeReading { return r.kernel.store.reading() }),
		reg.AddTimings("trunkline_store_write_seconds",
			"Time that a group took to be written, with its sync in mode always.", nil, func(put obs.PutTiming) {
				if st := s.first().kernel.store; st.log.Load() != nil {
					put(st.meter.Timing(stepCommit)) // which all have in common
				}
			}))
}

// addReplicas registers metrics that each partition has, with its number as a label where there are
// several.
func addReplicas[S any](s *server, reg *obs.Registry, metrics []metric[S], read func(*replica) *S) error {
	if len(s.parts) == 1 {
		return addMetrics(reg, metrics, func() *S { return read(s.first()) })
	}
	families := make([]obs.Family, len(metrics))
	for i := range metrics {
		families[i] = metrics[i].Family
		families[i].Labels = append(slices.Clone(families[i].Labels), "partition")
	}
	return reg.AddGroup(families, func(put obs.Put) {
		for _, r := range s.replicas() {
			number := strconv.Itoa(r.partition)
			putMetrics(metrics, read(r), func(family int, value float64, labels ...string) {
				put(family, value, append(labels, number)...)
			})
		}
	})
}

// reading returns nil until the store is open.
func (s *storage) reading() *storeReading {
	log, w := s.log.Load(), s.store.Load()
	if log == nil {
		return nil
	}
	return &storeReading{Log: log, stats: log.Stats(), disk: s.disk(w), last: s.lastSnapshot(log)}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
