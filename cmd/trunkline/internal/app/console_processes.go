package app

import (
	"bytes"

	"trunkline/engine/kernel"
	"trunkline/handlers/console"
	"trunkline/handlers/ipc"
)

// processes lists those of the partitions that this node owns, one after the other. A number of
// creation is shown with that of its partition: times the number of partitions, and plus its own.
func (p *consolePages) processes(f console.ProcessFilter) (list console.ProcessList) {
	list.Processes = []console.Process{}
	parts := uint64(len(p.s.parts))
	for _, r := range p.s.replicas() {
		st := r.stats()
		if st == nil {
			continue
		}
		list.Total += st.Counts.Total
		own, after := uint64(r.partition), uint64(0)
		if own == f.After%parts {
			after = f.After / parts
		}
		if own >= f.After%parts && list.Next == 0 {
			listProcesses(&list, r.kernel.svc, &f, after, func(created uint64) uint64 { return created*parts + own })
		}
	}
	return list
}

// listProcesses adds those of one service that were created after a number.
func listProcesses(list *console.ProcessList, svc *ipc.Service, f *console.ProcessFilter, after uint64, number func(created uint64) uint64) {
	last := number(after)
	svc.Processes(after, func(pcb *kernel.PCB) bool {
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
			State: pcb.State.String(), Priority: pcb.Priority.String(), Stage: svc.Stage(pcb.PID),
			Usage: console.Usage{LLMCalls: pcb.Usage[kernel.LLMCalls], ToolCalls: pcb.Usage[kernel.ToolCalls], AgentHops: pcb.Usage[kernel.AgentHops],
				TokensIn: pcb.Usage[kernel.TokensIn], TokensOut: pcb.Usage[kernel.TokensOut]},
		})
		return true
	})
}
