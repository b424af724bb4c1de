package console

import (
	"context"
	"encoding/json"
	"time"

	"trunkline/engine/obs"
)

// Source is the server as the console sees it. A member that is nil leaves its page out. The
// members are called from several goroutines at once, hold no lock for long, and keep to the limits
// that they are given.
type Source struct {
	Overview func() obs.Overview
	// Processes lists processes in the order of their creation, Process shows one.
	Processes func(f ProcessFilter) ProcessList
	Process   func(ctx context.Context, pid string) (ProcessDetail, error)
	// Terminate ends a process and returns when that is as safe as the mode of the store.
	Terminate func(ctx context.Context, pid, reason string) error
	// Threads lists agent threads, newest first, Thread shows the messages of one after a number.
	Threads func(f ThreadFilter) ThreadList
	Thread  func(id string, after uint64, limit int) (ThreadDetail, error)
	// FollowThread calls show with the messages behind a number as they become durable, until ctx
	// ends or show fails. PostMessage and CloseThread return when the change is durable.
	FollowThread             func(ctx context.Context, id string, after uint64, show func([]Message) error) error
	PostMessage, CloseThread func(ctx context.Context, id, text string) error
	// Projects lists the open projects, Project shows one with its last events.
	Projects func() []Project
	Project  func(id string, limit int) (ProjectDetail, error)
	// Cancel gives up the plan of a project that waits for approval, or the execution that goes on.
	Cancel func(ctx context.Context, id string) error
	// Topics lists types of events, commands and queries, Subscribe follows events.
	Topics    func(limit int) TopicList
	Subscribe func(ctx context.Context, types []string) (Subscription, error)

	Connections func() []obs.Connection
	// Drop closes a connection at once.
	Drop func(ctx context.Context, id string) error

	// Order carries out an order to the cluster that the server belongs to.
	Order func(ctx context.Context, o ClusterOrder) error

	Slow  func() obs.SlowLog
	Store func() Store
	// Cluster returns what is known of the cluster, Standing what the server is to its journal: nil
	// where there is none.
	Cluster  func() obs.Cluster
	Standing func() *obs.Standing
	// Unready returns why processes, threads and topics cannot be shown now; nil: they can.
	Unready func() error
	// Settings lists the settings in force. Values hold no secrets.
	Settings func() []Setting
}

// ClusterOrder is an order to a cluster.
type ClusterOrder struct {
	// Verb is "move": Node is to own Partition; "drain": Node, this one where it is empty, is to
	// own none; "resume": it takes over again; or "rebalance": the nodes are to own as many each.
	Verb      string
	Partition int
	Node      string
}

// ProcessFilter selects processes. Empty texts select all.
type ProcessFilter struct {
	State string
	User  string
	// PID is a part of the identifier.
	PID string
	// After is the number of creation behind which the list begins.
	After uint64
	// Limit bounds the processes listed, Scan those that are looked at.
	Limit, Scan int
}

// ProcessList is one page of processes.
type ProcessList struct {
	Processes []Process `json:"processes"`
	// Total counts all processes in the table.
	Total int64 `json:"total"`
	// Scanned counts those that were looked at for the page.
	Scanned int `json:"scanned"`
	// Next is the After of the next page; 0: there is none.
	Next uint64 `json:"next_after"`
}

// Process is a row of the process table.
type Process struct {
	PID       string `json:"pid"`
	RequestID string `json:"request_id"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Priority  string `json:"priority"`
	// Stage is the current stage of the session of the same name; empty without one.
	Stage string `json:"current_stage"`
	Usage Usage  `json:"usage"`
}

// Usage is what a process has used.
type Usage struct {
	LLMCalls  int64 `json:"llm_calls"`
	ToolCalls int64 `json:"tool_calls"`
	AgentHops int64 `json:"agent_hops"`
	TokensIn  int64 `json:"tokens_in"`
	TokensOut int64 `json:"tokens_out"`
}

// ProcessDetail is a process with its session.
type ProcessDetail struct {
	Process
	// Session is nil where there is none of the process.
	Session *Session `json:"session"`
}

// Session is a pipeline on its way.
type Session struct {
	CurrentStage   string   `json:"current_stage"`
	StageOrder     []string `json:"stage_order"`
	Terminated     bool     `json:"terminated"`
	TerminalReason string   `json:"terminal_reason"`
	// Edges counts the hops by "from->to".
	Edges    map[string]int64 `json:"edge_traversals"`
	Envelope json.RawMessage  `json:"envelope"`
}

// ThreadFilter selects agent threads. Empty texts select all.
type ThreadFilter struct {
	Workspace, Status string
	// Before is the number of the thread before which the list begins; 0: at the newest one.
	Before      uint64
	Limit, Scan int
}

// ThreadList is one page of agent threads.
type ThreadList struct {
	Threads []Thread `json:"threads"`
	Total   int64    `json:"total"`
	Scanned int      `json:"scanned"`
	// Next is the Before of the next page; 0: there is none.
	Next uint64 `json:"next_before"`
}

// Thread is an agent thread.
type Thread struct {
	ID           string    `json:"thread_id"`
	Workspace    string    `json:"workspace_id"`
	Title        string    `json:"title"`
	Type         string    `json:"type"`
	Status       string    `json:"status"`
	Participants []string  `json:"participants"`
	Created      time.Time `json:"created_at"`
	Updated      time.Time `json:"updated_at"`
	// Latest is the number of its last message.
	Latest uint64 `json:"latest_seq"`
}

// ThreadDetail is an agent thread with some of its messages.
type ThreadDetail struct {
	Thread
	Messages []Message      `json:"messages"`
	Readers  []ThreadReader `json:"readers"`
	Jobs     []ThreadJob    `json:"jobs"`
	// Next is the number to go on after, More whether messages follow.
	Next uint64 `json:"next_after"`
	More bool   `json:"more"`
}

// Message is a message of an agent thread.
type Message struct {
	Seq      uint64          `json:"seq"`
	ID       string          `json:"message_id"`
	Kind     string          `json:"kind"`
	Sender   string          `json:"sender_agent_id"`
	At       time.Time       `json:"created_at"`
	Body     string          `json:"body"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Project is an open project.
type Project struct {
	ID    string `json:"project_id"`
	Root  string `json:"project_root"`
	State string `json:"state"`
	// Oldest and Last are the numbers of the events that are kept.
	Oldest uint64 `json:"oldest_stream_seq"`
	Last   uint64 `json:"last_stream_seq"`
}

// ProjectDetail is a project with its last events, oldest first, each as its clients get it.
type ProjectDetail struct {
	Project
	Events []json.RawMessage `json:"events"`
}

// TopicList is some of the types and patterns that streams list.
type TopicList struct {
	Topics   []Topic `json:"topics"`
	Patterns []Topic `json:"patterns"`
	// More reports that there are further ones.
	More bool `json:"more"`
}

// Topic is a type of events, commands or queries.
type Topic struct {
	Name        string `json:"name"`
	Subscribers int    `json:"subscribers"`
	// CommandHandler and QueryHandler report that a handler is registered.
	CommandHandler bool `json:"command_handler"`
	QueryHandler   bool `json:"query_handler"`
}

// Subscription is a stream of events. Its methods are for one goroutine.
type Subscription interface {
	// Next waits for the next event.
	Next(ctx context.Context) (Event, error)
	Close()
}

// Event is an event of the message bus.
type Event struct {
	At      time.Time
	Type    string
	Source  string
	Payload string
	// Gap reports that events are missing at this place; Dropped is how many, 0 where that is not
	// known.
	Gap     bool
	Dropped int64
}

// Store is what survives, and how far it is written.
type Store struct {
	Mode     string   `json:"mode"`
	Dir      string   `json:"dir,omitempty"`
	Warnings []string `json:"warnings"`
	// Recovery describes a recovery that goes on, empty when none does.
	Recovery string `json:"recovery,omitempty"`
	// Open is set once the journal can be read. What follows is zero before.
	Open           bool       `json:"open"`
	Epoch          uint64     `json:"epoch"`
	Appended       uint64     `json:"appended_index"`
	Durable        uint64     `json:"durable_index"`
	QueueRecords   int64      `json:"queue_records"`
	QueueBytes     int64      `json:"queue_bytes"`
	Records        uint64     `json:"records"`
	Groups         uint64     `json:"groups"`
	Bytes          uint64     `json:"bytes"`
	Snapshots      uint64     `json:"snapshots"`
	LastSnapshot   uint64     `json:"last_snapshot_index"`
	LastSnapshotAt *time.Time `json:"last_snapshot_at"`
	UsedBytes      uint64     `json:"used_bytes"`
	FreeBytes      uint64     `json:"free_bytes"`
	Error          string     `json:"error,omitempty"`
}

// Setting is a setting with the value in force.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Origin is where the value came from: "default", "file PATH", "env NAME", "flag NAME".
	Origin string `json:"origin"`
	// Reload is "live" if a reload changes the setting, else "restart". Waiting is set while a new
	// value waits for that restart.
	Reload  string `json:"reload"`
	Waiting bool   `json:"waiting"`
	Help    string `json:"help"`
}
