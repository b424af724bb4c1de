package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"trunkline/engine/bus"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/threadstore"
	"trunkline/handlers/console"
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
	return console.Thread{ID: l.ID, Workspace: l.Workspace, Title: l.Title, Type: l.Type.String(), Status: l.Status.String(), Participants: l.Participants,
		Created: time.UnixMilli(l.Created).UTC(), Updated: time.UnixMilli(l.Updated).UTC(), Latest: l.Latest}
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
	whole := 0
	for _, r := range p.s.replicas() {
		if !r.kernel.whole.Load() {
			continue
		}
		whole++
		if l, ok := r.kernel.rt.Threads.Show([]byte(id)); ok {
			return readThread(r.kernel.rt.Threads, &l, after, limit)
		}
	}
	if whole == 0 {
		return d, errNotReady
	}
	return d, fmt.Errorf("%w: thread %q", obs.ErrNotFound, id)
}

// readThread shows messages of a thread.
func readThread(engine *threadstore.Engine, l *threadstore.Listed, after uint64, limit int) (d console.ThreadDetail, err error) {
	d.Thread, d.Messages = shownThread(l), []console.Message{}
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
