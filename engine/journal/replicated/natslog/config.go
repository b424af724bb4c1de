// Package natslog is a replicated.Stream on NATS JetStream: one stream for the log of a partition,
// and one beside it for the chunks of its snapshots. The servers must sync always (sync_interval:
// always): JetStream acknowledges before it syncs otherwise, and a power loss then takes what was
// acknowledged. This package cannot see that setting: the configuration of the servers checks it.
package natslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/mod/semver"

	"trunkline/engine/journal"
)

// Defaults of Config.
const (
	defaultReplicas     = 3
	defaultAnswerWithin = time.Second
	// duplicates is how long a server remembers the ids of messages.
	duplicates = 2 * time.Minute
	// chunksSuffix is what the name of the stream of the chunks has behind that of the log.
	chunksSuffix = "_SNAP"
)

// Config is where the streams are.
type Config struct {
	// Conn is the connection. The caller closes it, after all that use it.
	Conn *nats.Conn
	// Name begins the names of both streams and their subjects: letters, digits, - and _.
	Name string
	// Replicas is how many servers keep each stream. 0: defaultReplicas. Streams that have fewer
	// are refused.
	Replicas int
	// AnswerWithin is how long a server may take to answer. 0: defaultAnswerWithin.
	AnswerWithin time.Duration
	// Partitions is how many logs the cluster has, which is written to each stream when that is
	// made: streams of another number are refused (ErrPartitions). 0: 1.
	Partitions int
	// Local has what this process keeps of the streams; nil where servers elsewhere keep all.
	Local Local
}

// ErrPartitions is returned for a stream of a cluster with another number of partitions.
var ErrPartitions = errors.New("the number of partitions is fixed when a cluster is made")

// partitionsKey names the number of partitions in the metadata of a stream. A stream without it is
// the only one.
const partitionsKey = "trunkline_partitions"

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (c *Config) complete() error {
	c.Replicas = cmp.Or(c.Replicas, defaultReplicas)
	c.AnswerWithin = cmp.Or(c.AnswerWithin, defaultAnswerWithin)
	c.Partitions = cmp.Or(c.Partitions, 1)
	switch {
	case c.Conn == nil:
		return errors.New("cannot open stream: there is no connection")
	case !validName.MatchString(c.Name):
		return fmt.Errorf("cannot open stream %q: a name is 1 to 64 letters, digits, - and _", c.Name)
	case c.Replicas < 1 || c.AnswerWithin < 0 || c.Partitions < 0:
		return fmt.Errorf("cannot open stream %s with %d replicas that answer within %s, of %d partitions", c.Name, c.Replicas, c.AnswerWithin, c.Partitions)
	}
	return nil
}

// Open opens the streams, or makes them where they are missing. It refuses streams whose settings
// could lose what was acknowledged, and servers before 2.15.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if v := cfg.Conn.ConnectedServerVersion(); v != "" && !recent(v) {
		return nil, fmt.Errorf("cannot open stream %s: the server is of version %s, want 2.15.0 or later", cfg.Name, v)
	}
	js, err := jetstream.New(cfg.Conn, jetstream.WithPublishAsyncTimeout(cfg.AnswerWithin), jetstream.WithDefaultTimeout(cfg.AnswerWithin))
	if err != nil {
		return nil, fmt.Errorf("cannot open stream %s: %w", cfg.Name, err)
	}
	push, err := cfg.Conn.JetStream(nats.MaxWait(cfg.AnswerWithin))
	if err != nil {
		return nil, fmt.Errorf("cannot open stream %s: %w", cfg.Name, err)
	}
	l := &Log{cfg: cfg, js: js, push: push, root: cfg.Name + "."}
	if n := l.maxData(); n < journal.MaxChunkBytes {
		return nil, fmt.Errorf("cannot open stream %s: the servers take messages of %d bytes (max_payload), want at least %d", cfg.Name, n, journal.MaxChunkBytes)
	}
	if l.log, err = open(ctx, js, l.logConfig()); err == nil {
		l.chunks, err = open(ctx, js, l.chunksConfig())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open stream %s: %w", cfg.Name, err)
	}
	return l, nil
}

// recent reports whether a version of a server is at least 2.15.
func recent(version string) bool { return semver.Compare("v"+version, "v2.15.0") >= 0 }

// base is what both streams have in common: nothing is ever discarded.
func (l *Log) base(name, subject string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:       name,
		Subjects:   []string{l.root + subject},
		Storage:    jetstream.FileStorage,
		Replicas:   l.cfg.Replicas,
		DenyDelete: true,
		Duplicates: duplicates,
		Discard:    jetstream.DiscardNew,
		Metadata:   map[string]string{partitionsKey: strconv.Itoa(l.cfg.Partitions)},
	}
}

func (l *Log) logConfig() jetstream.StreamConfig {
	c := l.base(l.cfg.Name, logSubjects)
	c.AllowAtomicPublish = true
	return c
}

func (l *Log) chunksConfig() jetstream.StreamConfig {
	return l.base(l.cfg.Name+chunksSuffix, setSubject+"*")
}

// open opens a stream, or makes it, and compares it with what it must be.
func open(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
	}
	if err != nil {
		return nil, err
	}
	if has := cmp.Or(s.CachedInfo().Config.Metadata[partitionsKey], "1"); has != want.Metadata[partitionsKey] {
		return nil, fmt.Errorf("%w: stream %s is of %s, and here there are %s", ErrPartitions, want.Name, has, want.Metadata[partitionsKey])
	}
	if wrong := differences(s.CachedInfo().Config, want); wrong != "" {
		return nil, fmt.Errorf("stream %s could lose what was acknowledged: %s", want.Name, wrong)
	}
	return s, nil
}

// differences names the settings of a stream under which it must not keep a journal.
func differences(got, want jetstream.StreamConfig) string {
	var wrong []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	check(len(got.Subjects) == 1 && got.Subjects[0] == want.Subjects[0], "subjects are %v, want %v", got.Subjects, want.Subjects)
	check(got.Storage == want.Storage, "storage is %s, want %s", got.Storage, want.Storage)
	check(got.Replicas >= want.Replicas, "replicas are %d, want %d", got.Replicas, want.Replicas)
	check(got.Retention == want.Retention, "retention is %s, want %s", got.Retention, want.Retention)
	check(got.Discard == want.Discard, "discard is %s, want %s", got.Discard, want.Discard)
	check(got.MaxAge == 0 && got.MaxMsgs <= 0 && got.MaxBytes <= 0 && got.MaxMsgsPerSubject <= 0, "it forgets by age, number or size")
	check(got.DenyDelete, "messages can be deleted")
	check(!got.AllowDirect && !got.AllowRollup && !got.AllowMsgTTL && !got.Sealed && !got.NoAck, "one of allow_direct, allow_rollup_hdrs, allow_msg_ttl, sealed and no_ack is set")
	check(got.AllowAtomicPublish == want.AllowAtomicPublish, "allow_atomic is %v, want %v", got.AllowAtomicPublish, want.AllowAtomicPublish)
	check(got.Duplicates >= want.Duplicates, "duplicate_window is %s, want %s", got.Duplicates, want.Duplicates)
	check(got.PersistMode == want.PersistMode, "persist_mode is %v, want the default", got.PersistMode)
	check(got.Mirror == nil && len(got.Sources) == 0 && got.SubjectTransform == nil, "it has a mirror, sources or a subject transform")
	return strings.Join(wrong, "; ")
}
