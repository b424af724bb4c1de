package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

const (
	pageBytes   = 4096
	sectorBytes = 512
	// maxFile bounds a file, in bytes: a disk is in memory.
	maxFile = 64 << 20
)

// read copies what a file has from a place on.
func (n *diskNode) read(to []byte, at uint64) int {
	if at >= uint64(len(n.data)) {
		return 0
	}
	return copy(to, n.data[at:])
}

// write changes bytes of a file, and fills what is between its end and a place behind it with
// zeros.
func (n *diskNode) write(b []byte, at uint64) error {
	if at > maxFile || uint64(len(b)) > maxFile-at {
		return syscall.EFBIG
	}
	begin, end := int(at), int(at)+len(b)
	if begin > len(n.data) {
		if err := n.truncate(at); err != nil {
			return err
		}
	}
	n.save(begin, end)
	if end > len(n.data) {
		n.data = append(n.data[:begin], b...)
	} else {
		copy(n.data[begin:], b)
	}
	n.changed = time.Now()
	return nil
}

// truncate gives a file another length.
func (n *diskNode) truncate(size uint64) error {
	if size > maxFile {
		return syscall.EFBIG
	}
	to := int(size)
	n.save(min(to, len(n.data)), max(to, len(n.data)))
	if to <= len(n.data) {
		n.data = n.data[:to]
	} else {
		n.data = append(n.data, make([]byte, to-len(n.data))...)
	}
	n.changed = time.Now()
	return nil
}

// save keeps the durable content of the pages of a range that is about to change.
func (n *diskNode) save(begin, end int) {
	for p := begin / pageBytes; p*pageBytes < end; p++ {
		if _, saved := n.old[p]; saved {
			continue
		}
		if n.old == nil {
			n.old = make(map[int][]byte)
		}
		from := p * pageBytes
		n.old[p] = slices.Clone(n.data[min(from, n.size):min(from+pageBytes, n.size)])
	}
}

// sync makes the bytes of a file durable.
func (n *diskNode) sync() { n.size, n.old = len(n.data), nil }

// lose returns a file to what is durable of it, and with a source of chance to some of the rest
// too.
func (n *diskNode) lose(chance *rand.Rand) {
	was := n.data
	disk := append([]byte(nil), was[:min(n.size, len(was))]...)
	disk = append(disk, make([]byte, n.size-len(disk))...)
	pages := slices.Sorted(maps.Keys(n.old))
	for _, p := range pages {
		copy(disk[min(p*pageBytes, n.size):], n.old[p])
	}
	if chance != nil {
		share := chance.IntN(3) // of the pages: none, half of them, all
		for _, p := range pages {
			if 2*share-chance.IntN(4) > 0 {
				disk = pageReached(disk, was, p, chance)
			}
		}
		if len(was) < n.size && chance.IntN(2) == 0 {
			disk = disk[:len(was)]
		}
	}
	n.data = disk
	n.sync()
}

// pageReached returns what is on a disk when a page reaches it, or only its first sectors.
func pageReached(disk, file []byte, page int, chance *rand.Rand) []byte {
	begin, whole := page*pageBytes, min((page+1)*pageBytes, len(file))
	end := whole
	if chance.IntN(4) == 0 {
		end = min(begin+chance.IntN(pageBytes/sectorBytes+1)*sectorBytes, whole)
	}
	if begin >= end {
		return disk
	}
	if len(disk) < end {
		disk = append(disk, make([]byte, end-len(disk))...)
	}
	copy(disk[begin:], file[begin:end])
	return disk
}
