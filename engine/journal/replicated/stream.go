package replicated

import (
	"context"
	"errors"
	"math"
	"time"

	"trunkline/engine/journal"
)

// Kind is what a message is.
type Kind uint8

// The kinds of messages.
const (
	// KindBlock is a block of the journal.
	KindBlock Kind = iota + 1
	// KindControl holds the snapshots and cuts.
	KindControl
	// KindMark is empty.
	KindMark
	// KindPart goes on with the block before it.
	KindPart
)

// Message is one message of a stream.
type Message struct {
	// Seq is its sequence. Sequences rise by one.
	Seq uint64
	// Kind is what Data is.
	Kind Kind
	// First is the index of the first record of a block; in other kinds that of the last block
	// before.
	First journal.Index
	// Parts is how many parts follow on a block that is too long for one message.
	Parts int
	// Owner is the fence of the Store that has sent it, and Sent what Config.Elapsed was there when
	// it was sent first. Both are 0 in first appends, their marks, parts, and messages of versions
	// that do not send them.
	Owner uint64
	Sent  time.Duration
	// Data is lent until the function that gets it returns.
	Data []byte
}

// Append is what is to be stored: some marks, a message, and its parts, in this order, all of them
// or nothing. Seq of the message has no meaning.
type Append struct {
	Message
	// After is the sequence that the stream must end at.
	After uint64
	// Marks is how many marks go before, and MarksFirst is their First.
	Marks      int
	MarksFirst journal.Index
	// Rest is the data of the parts, as many as Parts of the message.
	Rest [][]byte
	// ID names it: what is sent twice within the memory of the stream is stored once, and the
	// answer is the same.
	ID string
}

// Last returns the sequence of the last message, where it is stored.
func (a *Append) Last() uint64 { return a.After + uint64(a.Marks+1+len(a.Rest)) }

// Outcome is the answer to an Append.
type Outcome struct {
	// Seq is where the last message is, where Err is nil.
	Seq uint64
	// Err wraps ErrNotStored where the stream has refused the message: this sending has not stored
	// it and never will. With any other error the message is stored, or will be, or not.
	Err error
}

// State is what a stream holds.
type State struct {
	// First is the sequence of the first message, or what it will be. Last is that of the last
	// message that was ever stored.
	First, Last uint64
	// Deleted counts messages between them that are not there.
	Deleted int
	// MaxData is how long the data of a message may be. 0: as long as any.
	MaxData int
	// Control is the last control message, nil for none. It may be behind Last, and is never older
	// than the last one up to there. The caller keeps it.
	Control *Message
}

// Forever is the end of a Read that waits for what will be stored.
const Forever = math.MaxUint64

// Stream keeps messages in order, each on a majority of nodes. Any goroutine may call its methods.
// Every call ends after a time of its own, whether the stream answers or not; a Read, where nothing
// comes for that long, but not one to Forever.
type Stream interface {
	// Append sends a message and returns at once. Messages are sent in the order of the calls. wait
	// returns the outcome, or after some time that it is not known. It is called once at most.
	Append(a *Append) (wait func() Outcome)
	// Read calls f with the messages of a range in order. The caller checks that none is missing.
	// It stops at the first error of f and returns it as it is. A single message is read from the
	// node that leads, a longer range from any.
	Read(ctx context.Context, from, to uint64, f func(m *Message) error) error
	// Purge forgets the messages below a sequence. Sequences go on as before.
	Purge(ctx context.Context, below uint64) error
	// State returns what the stream holds: everything that was acknowledged before the call, unless
	// the node that answers has lost touch with the others.
	State(ctx context.Context) (State, error)
}

// Chunks keeps sets of chunks beside a stream, as safely. The rules of Stream hold.
type Chunks interface {
	// Put adds chunk number n, counted from 0, at the end of a set, and is durable when it returns.
	// After an error the chunk may be there.
	Put(ctx context.Context, set string, n uint32, chunk []byte) error
	// Get calls f with n chunks of a set in order; chunk is lent until f returns. Fewer are an
	// error. It stops at the first error of f and returns it as it is.
	Get(ctx context.Context, set string, n uint32, f func(chunk []byte) error) error
	// Sets returns the names of the sets.
	Sets(ctx context.Context) ([]string, error)
	// Drop forgets a set. A missing one is no error.
	Drop(ctx context.Context, set string) error
}

var (
	// ErrNotOwner means that the Store may not append, or not any more: another one has taken the
	// log over, or its stream has failed. It is in every error of a Store that has ended.
	ErrNotOwner = errors.New("this node does not own the journal")
	// ErrUnknown is beside ErrNotOwner where the stream has not answered: whether the last blocks
	// are stored is for the next owner to find.
	ErrUnknown = errors.New("it is not known whether the last blocks are stored")
	// ErrNotStored is in the Outcome of a message that was refused.
	ErrNotStored = errors.New("the stream has refused the message")
	// ErrNoRoom is in the Outcome of a message for which the stream has no room, and in the errors
	// that follow from it: a disk is full, or a limit of a server or of an account is reached.
	// Another server may have room, and take the message when it is sent again.
	ErrNoRoom = errors.New("the servers of the journal have no room for it: look at their disks and limits")
	// ErrBehind means that the stream knows of no snapshot as new as one that this node has a copy
	// of: it was made again or has lost its end, or the server that answers is behind the others.
	// Nothing is appended to it.
	ErrBehind = errors.New("the stream is behind what this node has seen of it")
	// ErrRebuild means that a standby cannot go on from where it is: what it has applied was cut,
	// or what it needs next was purged. It starts again from a snapshot.
	ErrRebuild = errors.New("cannot follow the journal from here: start again from the newest snapshot")
)
