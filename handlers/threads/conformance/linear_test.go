package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"trunkline/fuzz/rounds"
)

// threadState is a thread: its messages in order, each "key ", and the cursor of the reader.
type threadState struct {
	messages string
	cursor   int
}

func (s *threadState) latest() int { return strings.Count(s.messages, " ") }

// seq is the number of the message with a key, 0 if there is none.
func (s *threadState) seq(key string) int {
	before, _, found := strings.Cut(" "+s.messages, " "+key+" ")
	if !found {
		return 0
	}
	return strings.Count(before, " ") + 1
}

// threadCall is a call: of post with a key, of read, of ack with a number.
type threadCall struct {
	method, key string
	seq         int
}

// threadModel is what a thread does, one call after the other. An answer is what answerOf returns;
// without one, the call had its effect before the server died, or never.
var threadModel = &porcupine.NondeterministicModel{
	Init: func() []any { return []any{threadState{}} },
	Step: func(state, input, output any) []any {
		s, in := state.(threadState), input.(threadCall)
		next, answer := s, ""
		switch in.method {
		case "post_message":
			if s.seq(in.key) == 0 {
				next.messages += in.key + " "
			}
			answer = strconv.Itoa(next.seq(in.key))
		case "read_messages":
			answer = s.messages
		default:
			switch {
			case in.seq > s.latest():
				answer = "VALIDATION_ERROR " + strconv.Itoa(s.latest())
			case in.seq < s.cursor:
				answer = "CONFLICT " + strconv.Itoa(s.cursor)
			default:
				next.cursor, answer = in.seq, "ok"
			}
		}
		switch output.(string) {
		case answer:
			return []any{next}
		case "":
			return []any{s, next}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}

// answerOf condenses the answer to a call.
func answerOf(in threadCall, line string) (string, error) {
	var v struct {
		OK     bool
		Result struct {
			Seq      int
			Messages []struct{ Body string }
		}
		Error struct {
			Code    string
			Details map[string]int
		}
	}
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		return "", fmt.Errorf("%q: %w", line, err)
	}
	switch {
	case !v.OK:
		return fmt.Sprint(v.Error.Code, " ", v.Error.Details["latest_seq"]+v.Error.Details["current_last_read_seq"]), nil
	case in.method == "post_message":
		return strconv.Itoa(v.Result.Seq), nil
	case in.method == "ack_read":
		return "ok", nil
	}
	text := ""
	for _, m := range v.Result.Messages {
		text += m.Body + " "
	}
	return text, nil
}

// linearClient calls one thread, one call after the other.
type linearClient struct {
	id, posts int
	thread    string
	began     time.Time
	history   []porcupine.Operation
	err       error
}

// run calls until the server dies.
func (c *linearClient) run(p *peer, calls int) {
	for range calls {
		in := threadCall{method: "post_message", key: fmt.Sprint("k", rand.IntN(40))}
		params := fmt.Sprintf(`"schema_version":1,"kind":"chat","body":"%s","idempotency_key":"%s","metadata":{"x":"%020000d"}`, in.key, in.key, 0)
		switch n := rand.IntN(4); {
		case c.posts > 0:
		case n == 0:
			in, params = threadCall{method: "read_messages"}, `"limit":200`
		default:
			in = threadCall{method: "ack_read", seq: rand.IntN(42)}
			params = fmt.Sprintf(`"last_read_seq":%d`, in.seq)
		}
		op := porcupine.Operation{ClientId: c.id, Input: in, Call: int64(time.Since(c.began)), Output: "", Return: math.MaxInt64}
		line := ""
		err := p.send(`{"id":1,"method":"%s","params":{"thread_id":"%s",%s}}`, in.method, c.thread, params)
		if err == nil {
			line, err = p.in.ReadString('\n')
		}
		if err == nil {
			op.Return = int64(time.Since(c.began))
			op.Output, c.err = answerOf(in, line)
		}
		if c.history = append(c.history, op); err != nil || c.err != nil {
			return
		}
	}
}

// TestLinearizableOverCrashes takes the history of posts, reads and acknowledgements over lines
// while the server is killed again and again, and looks for an order that explains all answers.
func TestLinearizableOverCrashes(t *testing.T) {
	for range rounds.Pick(1, rounds.Of(1, 3)) {
		s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=200000", "TRUNKLINE_THREADS_HOT_BYTES=1048576")
		began := time.Now()
		var clients []*linearClient
		for n := range 2 {
			id := s.create()
			for i := range 5 {
				clients = append(clients, &linearClient{id: n*5 + i, posts: i % 3, thread: id, began: began})
			}
		}
		for range 4 {
			var running sync.WaitGroup
			for _, c := range clients {
				p := s.dial(map[bool]string{true: executioner, false: reviewer}[c.posts > 0])
				running.Go(func() { c.run(p, 60) })
			}
			time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
			s.kill()
			running.Wait()
			ended := int64(time.Since(began))
			for _, c := range clients {
				for i := range c.history {
					c.history[i].Return = min(c.history[i].Return, ended)
				}
			}
			s.run()
		}
		histories, calls := map[string][]porcupine.Operation{}, 0
		for _, c := range clients {
			if c.err != nil {
				t.Fatal(c.err)
			}
			histories[c.thread] = append(histories[c.thread], c.history...)
			calls += len(c.history)
		}
		for thread, history := range histories {
			a := s.post("read_messages", reviewer, `{"thread_id":"`+thread+`","limit":200}`)
			text, _ := answerOf(threadCall{}, `{"ok":true,"result":`+a.text+`}`)
			at := int64(time.Since(began))
			history = append(history, porcupine.Operation{ClientId: len(clients), Input: threadCall{method: "read_messages"}, Call: at, Output: text, Return: at + 1})
			if porcupine.CheckOperationsTimeout(threadModel.ToModel(), history, time.Minute) == porcupine.Illegal {
				t.Errorf("no order explains %v", history)
			}
		}
		t.Logf("%d calls", calls)
		s.stop()
	}
}
