package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// Tags of the header of an RPM package.
const (
	rpmName       = 1000
	rpmVersion    = 1001
	rpmArch       = 1022
	rpmModes      = 1030
	rpmOwners     = 1039
	rpmDirIndexes = 1116
	rpmBaseNames  = 1117
	rpmDirNames   = 1118
)

// rpmHeader is a section of a package: what each tag holds.
type rpmHeader struct {
	entries map[uint32][3]uint32 // type, offset, count
	store   []byte
}

// readRPMHeader reads the section at the beginning of data and returns what follows.
func readRPMHeader(t *testing.T, data []byte) (h rpmHeader, rest []byte) {
	t.Helper()
	if len(data) < 16 || !bytes.Equal(data[:4], []byte{0x8e, 0xad, 0xe8, 1}) {
		t.Fatal("no header of an RPM package")
	}
	count, size := binary.BigEndian.Uint32(data[8:]), binary.BigEndian.Uint32(data[12:])
	h.entries = map[uint32][3]uint32{}
	for i := range count {
		e := data[16+16*i:]
		h.entries[binary.BigEndian.Uint32(e)] = [3]uint32{binary.BigEndian.Uint32(e[4:]), binary.BigEndian.Uint32(e[8:]), binary.BigEndian.Uint32(e[12:])}
	}
	h.store = data[16+16*count:][:size]
	return h, data[16+16*count+size:]
}

func (h rpmHeader) texts(tag uint32) (all []string) {
	e := h.entries[tag]
	data := h.store[e[1]:]
	for range e[2] {
		text, rest, _ := bytes.Cut(data, []byte{0})
		all, data = append(all, string(text)), rest
	}
	return all
}

func checkRPM(t *testing.T, data []byte) {
	t.Helper()
	const lead = 96
	signature, _ := readRPMHeader(t, data[lead:])
	size := 16 + 16*len(signature.entries) + len(signature.store)
	h, _ := readRPMHeader(t, data[lead+(size+7)/8*8:])
	if name, version, arch := h.texts(rpmName)[0], h.texts(rpmVersion)[0], h.texts(rpmArch)[0]; name != "trunkline" || version != "0.16.0" || arch != "x86_64" {
		t.Errorf("rpm: %s %s %s", name, version, arch)
	}
	dirs, owners := h.texts(rpmDirNames), h.texts(rpmOwners)
	got := map[string]os.FileMode{}
	for i, base := range h.texts(rpmBaseNames) {
		dir := binary.BigEndian.Uint32(h.store[h.entries[rpmDirIndexes][1]+4*uint32(i):])
		mode := binary.BigEndian.Uint16(h.store[h.entries[rpmModes][1]+2*uint32(i):])
		got[dirs[dir]+base] = os.FileMode(mode).Perm()
		if owners[i] != "root" {
			t.Errorf("rpm: %s belongs to %s", base, owners[i])
		}
	}
	for name, mode := range shipped {
		if m, ok := got[name]; !ok || m != mode {
			t.Errorf("rpm: %s: %v %v in %v", name, m, ok, got)
		}
	}
	if _, ok := got["/usr/share/zsh/site-functions/_trunkline"]; !ok {
		t.Errorf("rpm: no completion for zsh in %v", got)
	}
}
