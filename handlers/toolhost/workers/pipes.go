package workers

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipe is one pipe; nil ends are not open.
type pipe struct{ r, w *os.File }

func (p *pipe) open() (err error) {
	p.r, p.w, err = os.Pipe()
	return err
}

func (p *pipe) close() {
	_ = p.r.Close() // nil, or its content is not needed
	_ = p.w.Close()
}

// pipes are the three streams of a process.
type pipes struct{ in, out, stderr pipe }

func (p *pipes) open() error {
	for _, one := range []*pipe{&p.in, &p.out, &p.stderr} {
		if err := one.open(); err != nil {
			p.close()
			return err
		}
	}
	return nil
}

func (p *pipes) close() {
	p.in.close()
	p.out.close()
	p.stderr.close()
}

// theirs are the ends that the process gets, in the order of its descriptors.
func (p *pipes) theirs() []*os.File { return []*os.File{p.in.r, p.out.w, p.stderr.w} }

// closeTheirs leaves them to the process.
func (p *pipes) closeTheirs() {
	for _, f := range p.theirs() {
		_ = f.Close() // the process has its own
	}
}

// ready reports whether a descriptor has what is asked for, an end or an error included.
func ready(fd uintptr, events int16) bool {
	p := [1]unix.PollFd{{Fd: int32(fd), Events: events}}
	n, _ := unix.Poll(p[:], 0)
	return n > 0
}
