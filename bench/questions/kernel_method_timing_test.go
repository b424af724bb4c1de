package questions

// Question: what does a request of each hot kernel method cost through the whole session, frame in
// to reply bytes out, 64 at a time over a table of 10,000 processes?

import (
	"fmt"
	"testing"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/engine/runtime"
)

const (
	kernelRows = 10_000
	// depth is how many requests a read brings.
	depth = 64
	// reads is how many of them are made, so that no row is asked for again soon.
	reads = kernelRows / depth
)

func BenchmarkKernelMethod(b *testing.B) { measure(b, kernelMethods()) }

func kernelMethods() []question {
	simple := func(method, want, body string) question {
		return question{name: method, free: true, prepare: func(tb testing.TB) work {
			return kernelWork(tb, filledRig(tb, nil), 0, want, func(row int) [][2]string {
				return [][2]string{{method, fmt.Sprintf(body, row)}}
			})
		}}
	}
	return []question{
		simple("GetProcess", `"state":"READY"`, `{"pid":"`+pidFormat+`"}`),
		{name: "RecordUsage", free: true, prepare: recordUsageWork},
		simple("CheckQuota", `"within_bounds":true`, `{"pid":"`+pidFormat+`"}`),
		{name: "CheckRateLimit", free: true, prepare: checkRateWork},
		{name: "TransitionState", free: true, prepare: transitionWork},
		{name: "GetNextRunnable", free: true, prepare: nextRunnableWork},
		{name: "CreateTerminate", free: true, prepare: createTerminateWork},
	}
}

// pidFormat is the pid of a row.
const pidFormat = "p0000000-0000-4000-8000-%012x"

// filledRig is a peer of an endpoint with kernelRows processes, each of a user of its own.
func filledRig(tb testing.TB, set func(*runtime.Config)) *peer {
	tb.Helper()
	p := newRig(tb, set).connect()
	for i := range kernelRows {
		p.feed(createRequest(i, i))
	}
	p.must(request(tb, "kernel", "GetProcessCounts", `{}`), fmt.Sprintf(`"total":%d`, kernelRows))
	return p
}

// createRequest is the frame that makes process i of a user.
func createRequest(i, user int) []byte {
	return frameOf("CreateProcess", "pid", uuid('p', i), "request_id", uuid('q', i), "user_id", uuid('u', user), "session_id", uuid('s', i))
}

// frameOf is a request of the kernel whose body is names and texts: what there are thousands of
// need not come from JSON.
func frameOf(method string, members ...string) []byte {
	body := mpack.AppendMap(nil, len(members)/2)
	for _, text := range members {
		body = mpack.AppendStr(body, text)
	}
	payload := mpack.AppendRequest(nil, []byte("00000001"), []byte("kernel"), []byte(method), body)
	return frame.Append(nil, frame.Request, payload, nil)
}

// kernelWork feeds reads of depth requests, a group of them for each row and the rows scattered,
// with step nanoseconds between two reads. All replies of the first round have to contain want.
func kernelWork(tb testing.TB, p *peer, step int64, want string, of func(row int) [][2]string) work {
	tb.Helper()
	in := make([][]byte, reads)
	for i, row := 0, 0; i < reads; i++ {
		for n := 0; n < depth; row++ {
			for _, call := range of(row * 7919 % kernelRows) {
				in[i] = append(in[i], request(tb, "kernel", call[0], call[1])...)
				n++
			}
		}
		p.now.Mono += step
		p.must(in[i], want)
	}
	at := 0
	return work{ops: depth, bytes: len(in[0]) / depth, run: func() {
		p.now.Mono += step
		p.feed(in[at])
		at = (at + 1) % reads
	}}
}

// recordUsageWork starts from counters so large that no encoding of them gets longer any more.
func recordUsageWork(tb testing.TB) work {
	p := filledRig(tb, nil)
	for i := range kernelRows {
		p.feed(request(tb, "kernel", "RecordUsage", fmt.Sprintf(`{"pid":%q,"llm_calls":100000,"tokens_in":100000,"tokens_out":100000}`, uuid('p', i))))
	}
	return kernelWork(tb, p, 0, `"llm_calls":10000`, func(row int) [][2]string {
		return [][2]string{{"RecordUsage", fmt.Sprintf(`{"pid":"`+pidFormat+`","llm_calls":1,"tokens_in":120,"tokens_out":300}`, row)}}
	})
}

// checkRateWork asks at a rate that the limits let pass and that keeps three stamps in the log of
// each user.
func checkRateWork(tb testing.TB) work {
	p := filledRig(tb, nil)
	const step = 10e9
	w := kernelWork(tb, p, step, `"allowed":true`, func(row int) [][2]string {
		return [][2]string{{"CheckRateLimit", fmt.Sprintf(`{"user_id":%q}`, uuid('u', row))}}
	})
	for range 4 * reads {
		w.run()
	}
	return w
}

// transitionWork has each row run and brings it back.
func transitionWork(tb testing.TB) work {
	return kernelWork(tb, filledRig(tb, nil), 0, `"pid":`, func(row int) [][2]string {
		body := `{"pid":"` + pidFormat + `","new_state":"%s"}`
		return [][2]string{{"TransitionState", fmt.Sprintf(body, row, "RUNNING")}, {"TransitionState", fmt.Sprintf(body, row, "READY")}}
	})
}

// nextRunnableWork takes the queue's front until it is nearly empty; then all are put back to their
// places.
func nextRunnableWork(tb testing.TB) work {
	p := filledRig(tb, func(c *runtime.Config) { c.DequeueLease = -1 })
	back := make([][]byte, reads)
	for i := range kernelRows {
		back[i%reads] = append(back[i%reads], frameOf("ScheduleProcess", "pid", uuid('p', i))...)
	}
	w := kernelWork(tb, p, 0, `"state":"READY"`, func(int) [][2]string { return [][2]string{{"GetNextRunnable", `{"start":false}`}} })
	for _, in := range back {
		p.must(in, `"state":"READY"`)
	}
	w.every, w.again = reads, func() {
		for _, in := range back {
			p.feed(in)
		}
	}
	return w
}

// createTerminateWork makes processes and ends them, in a full table where each creation evicts the
// oldest that has ended. One operation is both requests.
func createTerminateWork(tb testing.TB) work {
	const users, step = 1000, 10e9
	p := newRig(tb, func(c *runtime.Config) { c.MaxProcesses, c.MaxRateLimitUsers = kernelRows, users }).connect()
	in := make([][]byte, 2*kernelRows/(depth/2))
	for i := range in {
		for j := range depth / 2 {
			n := i*depth/2 + j
			in[i] = append(in[i], createRequest(n, n%users)...)
			in[i] = append(in[i], frameOf("TerminateProcess", "pid", uuid('p', n))...)
		}
	}
	at := 0
	run := func() {
		p.now.Mono += step
		p.feed(in[at])
		at = (at + 1) % len(in)
	}
	for range 2 * len(in) { // until the table is full, and every log of a user as long as it gets in an hour
		run()
	}
	p.now.Mono += step
	p.must(in[0], `"pid":`)
	at = 1
	return work{run: run, ops: depth / 2, bytes: 2 * len(in[0]) / depth}
}
