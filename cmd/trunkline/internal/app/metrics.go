package app

import (
	"strconv"

	"trunkline/engine/kernel"
	"trunkline/engine/link"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/handlers/exchange"
	"trunkline/handlers/ipc"
)

// The families of the kernel endpoint. An index is the family's place in serviceFamilies or
// socketFamilies.
const (
	famCalls = iota
	famProcesses
	famReadyQueue
	famEvents
	famCommands
	famQueries
	famDropped
	famSubscribers
	famPending
	famBuffered
	famNames
	famSessions
	famSessionBytes
	famEnvelopes
	famEnvelopeBytes
)

func serviceFamilies() []obs.Family {
	return []obs.Family{
		famCalls:       {Name: "trunkline_ipc_calls_total", Help: "Requests answered, by method and wire code; both names empty for frames that reached no method.", Labels: []string{"service", "method", "code"}},
		famProcesses:   {Name: "trunkline_processes", Help: "Processes in the table, by state.", Kind: obs.Gauge, Labels: []string{"state"}},
		famReadyQueue:  {Name: "trunkline_ready_queue_processes", Help: "Processes waiting in the ready queue, leased ones left out.", Kind: obs.Gauge},
		famEvents:      {Name: "trunkline_bus_events_published_total", Help: "Events published, lifecycle events included, with or without a subscriber."},
		famCommands:    {Name: "trunkline_bus_commands_sent_total", Help: "Commands accepted by a handler's buffer."},
		famQueries:     {Name: "trunkline_bus_queries_executed_total", Help: "Queries answered by a handler."},
		famDropped:     {Name: "trunkline_bus_events_dropped_total", Help: "Events a full subscription did not take, counted once per subscription."},
		famSubscribers: {Name: "trunkline_bus_subscribers", Help: "Live Subscribe streams.", Kind: obs.Gauge},
		famPending:     {Name: "trunkline_bus_pending_queries", Help: "Queries waiting for their handler's answer.", Kind: obs.Gauge},
		famBuffered:    {Name: "trunkline_bus_buffered_bytes", Help: "Bytes of messages held for streams, a shared message counted once.", Kind: obs.Gauge},

		famNames: {Name: "trunkline_bus_name_bytes", Help: "Bytes of the names that streams list, and 128 for each.", Kind: obs.Gauge},

		famSessions:      {Name: "trunkline_orchestration_sessions", Help: "Orchestration sessions held, ended ones included.", Kind: obs.Gauge},
		famSessionBytes:  {Name: "trunkline_orchestration_session_bytes", Help: "Bytes held by orchestration sessions.", Kind: obs.Gauge},
		famEnvelopes:     {Name: "trunkline_envelopes", Help: "Envelopes in the store.", Kind: obs.Gauge},
		famEnvelopeBytes: {Name: "trunkline_envelope_bytes", Help: "Bytes held by envelopes in the store.", Kind: obs.Gauge},
	}
}

func putService(put obs.Put, s ipc.Stats) {
	for _, c := range s.Calls {
		put(famCalls, float64(c.Count), c.Service, c.Method, c.Code.String())
	}
	for state, n := range s.Counts.ByState {
		put(famProcesses, float64(n), kernel.State(state).String())
	}
	put(famReadyQueue, float64(s.Counts.QueueDepth))
	put(famEvents, float64(s.Bus.EventsPublished))
	put(famCommands, float64(s.Bus.CommandsSent))
	put(famQueries, float64(s.Bus.QueriesExecuted))
	put(famDropped, float64(s.Bus.DroppedEvents))
	put(famSubscribers, float64(s.Bus.ActiveSubscribers))
	put(famPending, float64(s.Bus.PendingQueries))
	put(famBuffered, float64(s.Bus.BufferedBytes))
	put(famNames, float64(s.Bus.NameBytes))
	put(famSessions, float64(s.Orch.Sessions))
	put(famSessionBytes, float64(s.Orch.SessionBytes))
	put(famEnvelopes, float64(s.Orch.Envelopes))
	put(famEnvelopeBytes, float64(s.Orch.EnvelopeBytes))
}

const (
	famAccepted = iota
	famRefused
	famOpen
	famClosed
	famLeft
	famIn
	famOut
)

func socketFamilies() []obs.Family {
	return []obs.Family{
		famAccepted: {Name: "trunkline_connections_accepted_total", Help: "Connections that got a slot."},
		famRefused:  {Name: "trunkline_connections_refused_total", Help: "Connections turned away: over the limit, or a unix peer of another user."},
		famOpen:     {Name: "trunkline_connections_open", Help: "Connections holding a slot.", Kind: obs.Gauge},
		famClosed:   {Name: "trunkline_connections_closed_total", Help: "Connections closed, by reason.", Labels: []string{"reason"}},
		famLeft:     {Name: "trunkline_connections_left_loop_total", Help: "Connections that moved from an event loop to goroutines, by cause.", Labels: []string{"cause"}},
		famIn:       {Name: "trunkline_received_bytes_total", Help: "Bytes read from connections."},
		famOut:      {Name: "trunkline_sent_bytes_total", Help: "Bytes written to connections."},
	}
}

func putSockets(put obs.Put, s stream.Snapshot) {
	put(famAccepted, float64(s.Accepted))
	put(famRefused, float64(s.Refused))
	put(famOpen, float64(s.Open))
	for r, n := range s.Closed {
		put(famClosed, float64(n), link.Reason(r).String())
	}
	for d, n := range s.Left {
		put(famLeft, float64(n), stream.Departure(d).String())
	}
	put(famIn, float64(s.BytesIn))
	put(famOut, float64(s.BytesOut))
}

const (
	famWebRequests = iota
	famWebInFlight
	famWebConnections
)

func webFamilies() []obs.Family {
	return []obs.Family{
		famWebRequests:    {Name: "trunkline_http_requests_total", Help: "HTTP requests answered, by class of status.", Labels: []string{"class"}},
		famWebInFlight:    {Name: "trunkline_http_requests_in_flight", Help: "HTTP requests being read or answered, refused ones left out.", Kind: obs.Gauge},
		famWebConnections: {Name: "trunkline_http_connections_open", Help: "Open HTTP connections.", Kind: obs.Gauge},
	}
}

func putWeb(put obs.Put, s exchange.Stats) {
	for class := 2; class < len(s.Requests); class++ { // nothing is answered 1xx
		put(famWebRequests, float64(s.Requests[class]), strconv.Itoa(class)+"xx")
	}
	put(famWebInFlight, float64(s.InFlight))
	put(famWebConnections, float64(s.Connections))
}
