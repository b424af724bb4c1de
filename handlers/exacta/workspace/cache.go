package workspace

import "trunkline/engine/exacta/fault"

// maxCached is how many answers of planners a project keeps (exacta §4.20).
const maxCached = 256

// LoadAnswer returns the answer of a planner that the cache has under key, a SHA-256 (exacta
// §4.20); ok is false if there is none that can be read. The file lies in the project: what it
// holds is not to be trusted.
func (p *Project) LoadAnswer(key string) (answer []byte, ok bool) {
	b, err := p.loadIn([]string{"cache", "planner"}, key)
	return b, err == nil
}

// SaveAnswer puts an answer into the cache, and removes the oldest ones beyond 256. It must not run
// while another one is saved.
func (p *Project) SaveAnswer(key string, answer []byte) *fault.Fault {
	if f := p.saveIn([]string{"cache", "planner"}, key, answer); f != nil {
		return f
	}
	return p.prune(maxCached, []string{key}, "cache", "planner")
}
