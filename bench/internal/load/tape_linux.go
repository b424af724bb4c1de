package load

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
)

// Placeholder is the run of 12 bytes, as many as the last group of a UUID has, that is replaced
// with the tape's counter, in lower-case hexadecimal, each time its frame is sent: identifiers that
// must not repeat.
const Placeholder = "############"

// Tape is the endless, repeating list of requests of one connection of a closed loop, encoded
// beforehand, because on a small machine the generator shares the cores with the server. Its
// position survives a run, so that requests whose order matters (a process that goes READY,
// RUNNING, READY …) go on where the run before stopped. Only one connection may use a Tape at a
// time.
type Tape struct {
	Hello []byte // sent once on every new connection, before all frames; it is not answered, or what answers it is no reply

	data    []byte
	frames  []taped
	repeat  int // frames that repeat, once sealed; what lies behind them is a copy of the first ones
	next    int // the frame sent next
	counter uint64
}

// taped is one frame of a Tape.
type taped struct {
	from, to int   // in its data
	fresh    bool  // the counter goes up before it
	marks    []int // where placeholders stand, from its beginning on
}

// TapeOf is a tape of requests.
func TapeOf(requests ...[]byte) *Tape {
	t := new(Tape)
	for _, r := range requests {
		t.Add(r)
	}
	return t
}

// Add appends one frame to the tape.
func (t *Tape) Add(frame []byte) {
	var f taped
	for i := 0; ; i += len(Placeholder) {
		n := bytes.Index(frame[i:], []byte(Placeholder))
		if n < 0 {
			break
		}
		i += n
		f.marks = append(f.marks, i)
	}
	t.add(f, frame)
}

// AddFresh is Add for the frame that begins a new identifier: the counter goes up before it. Frames
// added with Add after it carry the same counter in their placeholders.
func (t *Tape) AddFresh(frame []byte) {
	t.Add(frame)
	t.frames[len(t.frames)-1].fresh = true
}

func (t *Tape) add(f taped, frame []byte) {
	f.from = len(t.data)
	t.data = append(t.data, frame...)
	f.to = len(t.data)
	t.frames = append(t.frames, f)
}

// Len returns the number of frames that repeat.
func (t *Tape) Len() int {
	if t.repeat > 0 {
		return t.repeat
	}
	return len(t.frames)
}

// seal repeats the first frames behind the last one, so that any depth frames in a row are one
// write.
func (t *Tape) seal(depth int) {
	t.repeat = t.Len()
	for len(t.frames) < t.repeat+depth {
		f := t.frames[len(t.frames)-t.repeat]
		t.add(f, t.data[f.from:f.to])
	}
}

// take returns the next n frames as one slice and moves on. n is at most the depth given to seal.
func (t *Tape) take(n int) []byte {
	frames := t.frames[t.next : t.next+n]
	for i := range frames {
		f := &frames[i]
		if f.fresh {
			t.counter++
		}
		for _, m := range f.marks {
			putHex(t.data[f.from+m:][:len(Placeholder)], t.counter)
		}
	}
	t.next = (t.next + n) % t.repeat
	return t.data[frames[0].from:frames[n-1].to]
}

// putHex writes a number in lower-case hexadecimal, with zeros in front.
func putHex(to []byte, n uint64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
}

// Identifier returns the 36-byte identifier of a kind for row i, in the shape of a UUID.
func Identifier(kind byte, i int) string {
	return fmt.Sprintf("%02x000000-0000-4000-8000-%012x", kind, i)
}

// PID returns the process identifier of row i, of those that CreateRows makes.
func PID(i int) string { return Identifier('p', i) }

// quotaFields are the limits that are lifted so that no request of a run is over quota: that is not
// the hot path.
var quotaFields = []string{"max_llm_calls", "max_tool_calls", "max_agent_hops", "max_iterations", "timeout_seconds", "max_input_tokens",
	"max_output_tokens", "max_inference_requests", "max_inference_input_chars"}

// LiftLimits sets members of a server's default quota to where nothing meets them.
func LiftLimits(addr string, names ...string) error {
	var quota []any
	for _, name := range names {
		quota = append(quota, name, math.MaxInt32)
	}
	if _, err := Ask(addr, "kernel", "SetQuotaDefaults", "quota", Map(quota...)); err != nil {
		return fmt.Errorf("cannot lift the limits: %w", err)
	}
	return nil
}

// CreateRows fills a server's table: the processes numbered from up to below to, with 36-byte
// identifiers, each of a user of its own so that no rate limit bites, under a quota that nothing
// exceeds.
func CreateRows(addr string, from, to int) error {
	if err := LiftLimits(addr, quotaFields...); err != nil {
		return err
	}
	id := func(kind byte) string { return Identifier(kind, 0)[:24] + Placeholder }
	request := NewRequest("kernel", "CreateProcess", "pid", id('p'), "request_id", id('q'), "user_id", id('u'),
		"session_id", id('s'))
	const piece = 25_000 // rows encoded at a time, on each of some connections
	var errs [16]error
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for at := from + i*piece; at < to && errs[i] == nil; at += len(errs) * piece {
				tape := new(Tape)
				for row := at; row < min(at+piece, to); row++ {
					tape.Add(bytes.ReplaceAll(request, []byte(Placeholder), fmt.Appendf(nil, "%012x", row)))
				}
				errs[i] = SendOnce(addr, Kernel, []*Tape{tape}, 64)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("cannot create processes %d to %d: %w", from, to, err)
	}
	return nil
}

// CreateRequest creates a process whose identifiers are alike: a user of its own meets no rate
// limit.
func CreateRequest(id string) []byte {
	return NewRequest("kernel", "CreateProcess", "pid", id, "request_id", id, "user_id", id, "session_id", id)
}

// RowRequest returns one request of a method about a row. The body holds the row's pid, and what
// RecordUsage records.
func RowRequest(method string, row int, more ...any) []byte {
	body := append([]any{"pid", PID(row)}, more...)
	if method == "RecordUsage" {
		body = append(body, "llm_calls", 1, "tokens_in", 120, "tokens_out", 300)
	}
	return NewRequest("kernel", method, body...)
}

// Encoder returns the request about a row.
type Encoder func(row int) []byte

// RowEncoders returns how the requests of a method about rows are encoded. TransitionState takes
// all rows of a connection to RUNNING and then all back to READY, which a server allows however
// often the tape repeats; two sets of its tapes need rows of their own.
func RowEncoders(method string) []Encoder {
	if method != "TransitionState" {
		return []Encoder{func(row int) []byte { return RowRequest(method, row) }}
	}
	to := func(state string) Encoder {
		return func(row int) []byte { return RowRequest(method, row, "new_state", state) }
	}
	return []Encoder{to("RUNNING"), to("READY")}
}

// MaxTape bounds the rows of one connection, so that a table of many does not need as much memory
// here.
const MaxTape = 4096

// Deal gives every connection its own rows, numbered from up to below to, in an order that no cache
// foresees.
func Deal(from, to, conns int) [][]int {
	order := rand.New(rand.NewPCG(1, 2)).Perm(to - from)
	hands := make([][]int, conns)
	for i, row := range order {
		if hand := &hands[i%conns]; len(*hand) < MaxTape {
			*hand = append(*hand, from+row)
		}
	}
	return hands
}

// RowTapes are tapes of a method about the rows numbered from up to below to.
func RowTapes(method string, from, to, conns int) []*Tape {
	return Tapes(Deal(from, to, conns), RowEncoders(method)...)
}

// Tapes makes a tape of each hand of rows: the first encoder goes through all of them, then the
// next.
func Tapes(hands [][]int, encoders ...Encoder) (tapes []*Tape) {
	for _, hand := range hands {
		tape := new(Tape)
		for _, encode := range encoders {
			for _, row := range hand {
				tape.Add(encode(row))
			}
		}
		tapes = append(tapes, tape)
	}
	return tapes
}
