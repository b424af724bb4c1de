package app

import (
	"bytes"

	"trunkline/engine/kernel"
	"trunkline/engine/runtime"
	"trunkline/handlers/console"
)

// processes lists those of the partitions that this node owns, one after the other. A number of
// creation is shown with that of its partition: times the number of partitions, and plus its own.
func (p *consolePages) processes(f console.ProcessFilter) (list console.ProcessList) {
	list.Processes = []console.Process{}
	for _, r := range p.s.replicas() {
		st := r.stats()
		if st == nil {
			continue
		}
		list.Total += st.Counts.Total
		if after, number := p.cursor(r, f.After); number != nil && list.Next == 0 {
			listProcesses(&list, r.kernel.rt, &f, after, number)
		}
	}
	return list
}

// cursor returns where a list goes on in the partition of a replica, and what makes a cursor of a
// number there; nil where the list is past that partition.
func (p *consolePages) cursor(r *replica, cursor uint64) (from uint64, number func(uint64) uint64) {
	own, parts := uint64(r.partition), uint64(len(p.s.parts))
	switch at := cursor % parts; {
	case own < at:
		return 0, nil
	case own == at:
		from = cursor / parts
	}
	return from, func(n uint64) uint64 { return n*parts + own }
}

// listProcesses adds those of one service that were created after a number.
func listProcesses(
	list *console.ProcessList,
	rt *runtime.Runtime,
	f *console.ProcessFilter,
	after uint64,
	number func(created uint64) uint64,
) {
	last := number(after)
	rt.Kernel.List(&kernel.ListFilter{Cursor: after}, func(pcb *kernel.PCB) bool {
		if len(list.Processes) == f.Limit || list.Scanned == f.Scan {
			list.Next = last
			return false
		}
		list.Scanned++
		last = number(pcb.Created)
		if f.State != "" && pcb.State.String() != f.State || f.User != "" && string(pcb.UserID) != f.User || !bytes.Contains(pcb.PID, []byte(f.PID)) {
			return true
		}
		list.Processes = append(list.Processes, console.Process{
			PID: string(pcb.PID), RequestID: string(pcb.RequestID), UserID: string(pcb.UserID), SessionID: string(pcb.SessionID),
			State: pcb.State.String(), Priority: pcb.Priority.String(), Stage: rt.Orchestration.CurrentStage(pcb.PID),
			Usage: console.Usage{LLMCalls: pcb.Usage[kernel.LLMCalls], ToolCalls: pcb.Usage[kernel.ToolCalls], AgentHops: pcb.Usage[kernel.AgentHops],
				TokensIn: pcb.Usage[kernel.TokensIn], TokensOut: pcb.Usage[kernel.TokensOut]},
		})
		return true
	})
}
