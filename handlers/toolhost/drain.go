package toolhost

import "sync"

// drains keeps the sessions that were told of the shutdown open for as long as a call runs off the loops, on whatever session: until
// then later lines are still refused in words (toolhost §2.3).
type drains struct {
	mu      sync.Mutex
	running int
	waiting map[*session]struct{}
	idlers  []chan<- struct{} // closed by the end of the last call
}

func (d *drains) begin() {
	d.mu.Lock()
	d.running++
	d.mu.Unlock()
}

// end wakes those who wait once nothing runs any more.
func (d *drains) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running--; d.running > 0 {
		return
	}
	for s := range d.waiting {
		s.port.Wake()
	}
	for _, ch := range d.idlers {
		close(ch)
	}
	d.idlers = nil
}

// notify has ch closed by the end of the last call; false means that nothing runs, and ch stays as it is.
func (d *drains) notify(ch chan<- struct{}) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == 0 {
		return false
	}
	d.idlers = append(d.idlers, ch)
	return true
}

// wait has s woken by the end of the last call, until it leaves.
func (d *drains) wait(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = make(map[*session]struct{})
	}
	d.waiting[s] = struct{}{}
}

func (d *drains) leave(s *session) {
	d.mu.Lock()
	delete(d.waiting, s)
	d.mu.Unlock()
}

func (d *drains) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running == 0
}
