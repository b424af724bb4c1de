package exacta

import (
	"slices"

	"trunkline/engine/exacta/fault"
	"trunkline/engine/exacta/wire"
)

// maxExports bounds the bundles of a project that are written at once.
const maxExports = 64

// export begins an ExportDiagnostics (exacta §4.15). It runs beside everything else, and shows the
// project as it is now.
func (p *Project) export(r *Request) {
	if len(p.exports) == maxExports {
		p.turnAway(r, fault.New("RES-004", "bundles: 64"))
		return
	}
	w := &Work{Request: r, Step: -1, Snapshot: p.snapshot()}
	p.exports = append(p.exports, w)
	p.Host.Run(w)
}

// dropExport forgets a bundle that was written.
func (p *Project) dropExport(w *Work) {
	p.exports = slices.DeleteFunc(p.exports, func(x *Work) bool { return x == w })
}

// exported ends an ExportDiagnostics.
func (p *Project) exported(w *Work) {
	if !slices.Contains(p.exports, w) {
		return // it was aborted, and answered then
	}
	p.dropExport(w)
	r := w.Request
	if err := w.Fault; err != nil {
		if w.cause != nil {
			err = w.cause
		}
		p.raise(r, r.flow, err)
		p.fail(r, err)
	} else {
		p.log(r, r.flow, "INFO", "FileGateway", "a bundle of diagnostics was written")
		p.done(r, append(wire.AppendText([]byte(`{"bundle_path":`), w.Bundle), '}'))
	}
	p.closeIdle()
}

// exportOf returns the export of a request, nil if none runs.
func (p *Project) exportOf(r *Request) *Work {
	i := slices.IndexFunc(p.exports, func(w *Work) bool { return w.Request == r })
	if i < 0 {
		return nil
	}
	return p.exports[i]
}
