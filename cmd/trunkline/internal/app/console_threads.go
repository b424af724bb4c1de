package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/engine/bus"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/runtime"
	"trunkline/engine/threadstore"
	"trunkline/handlers/console"
	"trunkline/handlers/threads/method"
)

// topics lists the lifecycle events, which always exist, and what streams list.
func (p *consolePages) topics(limit int) (list console.TopicList) {
	all, patterns := make(map[string]console.Topic), make(map[string]console.Topic)
	for _, r := range p.s.replicas() {
		topics, more := r.kernel.rt.Bus.Topics(limit)
		known, further := r.kernel.rt.Bus.Patterns(limit)
		list.More = list.More || more || further
		mergeTopics(all, topics)
		mergeTopics(patterns, known)
	}
	for kind := kernel.ProcessCreated; kind <= kernel.ResourceExhausted; kind++ {
		t := all[kind.String()]
		t.Name = kind.String()
		list.Topics = append(list.Topics, t)
		delete(all, t.Name)
	}
	first := func(to []console.Topic, all map[string]console.Topic) []console.Topic {
		names := slices.Sorted(maps.Keys(all))
		list.More = list.More || len(names) > limit
		for _, name := range names[:min(len(names), limit)] {
			to = append(to, all[name])
		}
		return to
	}
	list.Topics, list.Patterns = first(list.Topics, all), first([]console.Topic{}, patterns)
	return list
}

// mergeTopics adds the topics of a partition. A stream may be at several partitions: the most
// subscribers that one of them has are shown.
func mergeTopics(all map[string]console.Topic, topics []bus.Topic) {
	for _, t := range topics {
		m := all[t.Name]
		all[t.Name] = console.Topic{Name: t.Name, Subscribers: max(m.Subscribers, t.Subscribers),
			CommandHandler: m.CommandHandler || t.CommandHandler, QueryHandler: m.QueryHandler || t.QueryHandler}
	}
}

func shownThread(l *threadstore.Listed) console.Thread {
	return console.Thread{ID: l.ID, Workspace: l.Workspace, Title: l.Title, Type: l.Type.String(), Status: l.Status.String(),
		Participants: l.Participants,
		Created:      time.UnixMilli(l.Created).UTC(), Updated: time.UnixMilli(l.Updated).UTC(), Latest: l.Latest}
}

// threads lists those of the partitions that this node owns, one after the other, as processes
// does.
func (p *consolePages) threads(f console.ThreadFilter) (list console.ThreadList) {
	list.Threads = []console.Thread{}
	for _, r := range p.s.replicas() {
		if !r.kernel.whole.Load() {
			continue
		}
		engine := r.kernel.rt.Threads
		list.Total += int64(engine.Stats().Threads)
		if before, number := p.cursor(r, f.Before); number != nil && list.Next == 0 {
			listThreads(&list, engine, &f, before, number)
		}
	}
	return list
}

// listThreads adds those of one partition that were made before a number.
func listThreads(list *console.ThreadList, engine *threadstore.Engine, f *console.ThreadFilter, before uint64, number func(uint64) uint64) {
	last := number(before)
	engine.List(before, func(l *threadstore.Listed) bool {
		if len(list.Threads) == f.Limit || list.Scanned == f.Scan {
			list.Next = last
			return false
		}
		list.Scanned++
		last = number(l.Number)
		if (f.Workspace == "" || l.Workspace == f.Workspace) && (f.Status == "" || l.Status.String() == f.Status) {
			list.Threads = append(list.Threads, shownThread(l))
		}
		return true
	})
}

// thread shows a thread of a partition that this node owns.
func (p *consolePages) thread(id string, after uint64, limit int) (d console.ThreadDetail, err error) {
	rt, l, err := p.findThread(id)
	if err != nil {
		return d, err
	}
	return readThread(rt.Threads, l, after, limit)
}

// findThread finds a thread of a partition that this node owns.
func (p *consolePages) findThread(id string) (*runtime.Runtime, *threadstore.Listed, error) {
	whole := 0
	for _, r := range p.s.replicas() {
		if !r.kernel.whole.Load() {
			continue
		}
		whole++
		if l, ok := r.kernel.rt.Threads.Show([]byte(id)); ok {
			return r.kernel.rt, &l, nil
		}
	}
	if whole == 0 {
		return nil, nil, errNotReady
	}
	return nil, nil, fmt.Errorf("%w: thread %q", obs.ErrNotFound, id)
}

// woken is a threadstore.Watcher.
type woken chan struct{}

// Changed implements threadstore.Watcher.
func (w woken) Changed(string, uint64, uint64) {
	select {
	case w <- struct{}{}:
	default:
	}
}

// followBatch is how many messages are shown at a time.
const followBatch = 100

func (p *consolePages) followThread(ctx context.Context, id string, after uint64, show func([]console.Message) error) error {
	rt, l, err := p.findThread(id)
	if err != nil {
		return err
	}
	changed, reader := make(woken, 1), threadstore.Actor{Workspace: l.Workspace, Rank: threadstore.Auditor}
	var reg threadstore.Watch
	if _, ref := rt.Threads.Watch(&reader, []byte(id), changed, &reg); ref.Code != threadstore.OK {
		return errors.New("cannot watch the thread")
	}
	defer rt.Threads.Unwatch(&reg)
	for {
		d, err := readThread(rt.Threads, l, after, followBatch)
		if err != nil {
			return err
		}
		if len(d.Messages) > 0 {
			if err := show(d.Messages); err != nil {
				return err
			}
		}
		if after = d.Next; d.More {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// consoleAgent is the sender of what operators post.
const consoleAgent = "console_operator"

func consoleActor(l *threadstore.Listed) *threadstore.Actor {
	return &threadstore.Actor{Workspace: l.Workspace, Agent: consoleAgent, Session: consoleAgent, Rank: threadstore.Coordinator, Role: "operator"}
}

func (p *consolePages) postMessage(ctx context.Context, id, text string) error {
	rt, l, err := p.findThread(id)
	if err != nil {
		return err
	}
	body := jsonx.AppendString(nil, text)
	if strings.TrimSpace(text) == "" || len(text) > maxConsolePost {
		return fmt.Errorf("%w: a message has 1 to %d bytes", obs.ErrRefused, maxConsolePost)
	}
	got, ref := rt.Threads.Post(consoleActor(l), []byte(id), &threadstore.Post{Body: body[1 : len(body)-1]}, time.Now().UnixMilli())
	if ref.Code != threadstore.OK {
		return refusedChange(&ref)
	}
	return rt.Store.Await(ctx, got.Index)
}

// maxConsolePost bounds a message that is posted in the console.
const maxConsolePost = 4 << 10

func (p *consolePages) closeThread(ctx context.Context, id, reason string) error {
	rt, l, err := p.findThread(id)
	if err != nil {
		return err
	}
	if l.Status == threadstore.Blocked {
		reason = threadstore.OverridePrefixes()[0] + reason
	}
	_, got, ref := rt.Threads.SetStatus(consoleActor(l), []byte(id),
		&threadstore.Change{To: threadstore.Closed, Reason: reason}, time.Now().UnixMilli())
	if ref.Code != threadstore.OK {
		return refusedChange(&ref)
	}
	return rt.Store.Await(ctx, got.Index)
}

// refusedChange returns why a thread was not changed.
func refusedChange(ref *threadstore.Refusal) error {
	return fmt.Errorf("%w: %s", obs.ErrRefused, method.Refused(ref).Message)
}

// shownJobs is how many of the last jobs are shown.
const shownJobs = 20

// readThread shows messages of a thread.
func readThread(engine *threadstore.Engine, l *threadstore.Listed, after uint64, limit int) (d console.ThreadDetail, err error) {
	d.Thread, d.Messages = shownThread(l), []console.Message{}
	for _, agent := range l.Participants {
		s, _, _ := engine.Get(&threadstore.Actor{Workspace: l.Workspace, Agent: agent}, []byte(l.ID))
		d.Readers = append(d.Readers, console.ThreadReader{Agent: agent, Read: s.Read, Unread: s.Unread})
	}
	jobs, _ := engine.Jobs(&threadstore.Actor{Workspace: l.Workspace}, []byte(l.ID), shownJobs)
	for i := range jobs {
		j := &jobs[i]
		d.Jobs = append(d.Jobs, console.ThreadJob{ID: j.ID, Target: j.Target, Status: j.Status.String(), Code: j.Code,
			Created: time.UnixMilli(j.CreatedAt).UTC()})
	}
	reader := threadstore.Actor{Workspace: l.Workspace, Rank: threadstore.Auditor}
	text, page, refused := engine.Read(&reader, []byte(l.ID), after, limit, true, []byte("["))
	if refused.Code != threadstore.OK {
		return d, cmp.Or(refused.Err, errors.New("cannot read the messages"))
	}
	d.Next, d.More = page.Next, page.More
	if err = json.Unmarshal(append(text, ']'), &d.Messages); err != nil {
		return d, fmt.Errorf("cannot read the messages: %w", err)
	}
	return d, nil
}
