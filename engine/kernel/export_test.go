package kernel

// BlockedReason appends to dst the reason that pid was moved to BLOCKED with (kernel-ipc §5.1): its
// first maxIDLen bytes, cut at a character. It is kept while the process is BLOCKED; otherwise
// nothing is appended.
func (k *Kernel) BlockedReason(dst, pid []byte) ([]byte, Result) {
	sh, tag := k.home(pid)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	slot := sh.find(tag, pid)
	if slot == none {
		return dst, NotFound
	}
	return append(dst, sh.reasonOf(sh.row(slot))...), OK
}

// Put makes field f present with value v.
func (p *QuotaPatch) Put(f QuotaField, v int32) {
	p.Set |= 1 << f
	p.Values[f] = v
}
