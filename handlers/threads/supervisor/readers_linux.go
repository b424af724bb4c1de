package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one that reads the input of a terminal.
type process struct {
	pid, parent, group, tty int
	foreground              int // group of its terminal
	names                   []string
	argv                    []string
}

// readers returns the processes of the foreground of a pane's terminal, and those that read from
// other terminals below them: what is typed into the pane may reach these. ok is false where they
// cannot be inspected. pid is that of the pane.
func readers(pid int) (list []process, ok bool) {
	all, children := map[int]process{}, map[int][]int{}
	entries, _ := os.ReadDir("/proc") // without it the pane is not found
	for _, e := range entries {
		if p, ok := parseProcess(e.Name()); ok {
			all[p.pid] = p
			children[p.parent] = append(children[p.parent], p.pid)
		}
	}
	pane := all[pid]
	var next []int
	for _, p := range all {
		if pane.tty != 0 && p.tty == pane.tty && p.group == pane.foreground {
			list, next = append(list, p), append(next, p.pid)
		}
	}
	for ; len(next) > 0; next = next[1:] {
		for _, child := range children[next[0]] {
			p := all[child]
			if next = append(next, child); p.tty != 0 && p.tty != pane.tty && p.group == p.foreground {
				list = append(list, p)
			}
		}
	}
	for i := range list {
		if !list[i].identify() {
			return nil, false
		}
	}
	return list, len(list) > 0
}

// parseProcess reads what the system shows of a process (proc_pid_stat(5)).
func parseProcess(name string) (p process, ok bool) {
	pid, err := strconv.Atoi(name)
	if err != nil {
		return p, false
	}
	stat, err := os.ReadFile("/proc/" + name + "/stat")
	end := bytes.LastIndexByte(stat, ')')
	if err != nil || end < 0 {
		return p, false
	}
	var n [5]int // ppid, pgrp, session, tty_nr, tpgid
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) <= len(n) || fields[0] == "Z" || fields[0] == "X" {
		return p, false
	}
	for i := range n {
		if n[i], err = strconv.Atoi(fields[i+1]); err != nil {
			return p, false
		}
	}
	comm := string(stat[bytes.IndexByte(stat, '(')+1 : end])
	return process{pid: pid, parent: n[0], group: n[1], tty: n[3], foreground: n[4], names: []string{comm}}, true
}

// identify adds what the process is called: by its file, and by its first argument.
func (p *process) identify() bool {
	dir := "/proc/" + strconv.Itoa(p.pid)
	file, err := os.Readlink(dir + "/exe")
	text, _ := os.ReadFile(dir + "/cmdline") // empty where a process has cleared it
	if err != nil {
		return false
	}
	p.argv = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	p.names = append(p.names, filepath.Base(strings.TrimSuffix(file, " (deleted)")),
		strings.TrimLeft(filepath.Base(p.argv[0]), "-"))
	return true
}

// copyOf reports whether the process runs a copy of a program, under whatever name.
func (p *process) copyOf(name string) bool {
	exe := "/proc/" + strconv.Itoa(p.pid) + "/exe"
	own, err := os.Stat(exe)
	for _, dir := range []string{"/bin/", "/usr/bin/"} {
		if info, bad := os.Stat(dir + name); err == nil && bad == nil && info.Mode().IsRegular() &&
			info.Size() == own.Size() {
			a, errA := os.ReadFile(exe)
			b, errB := os.ReadFile(dir + name)
			return errA != nil || errB != nil || bytes.Equal(a, b)
		}
	}
	return false
}
