package envelope

// SetCompleted notes that a stage succeeded: it joins completed_stage_set and leaves failed_stages
// (envelope §5.2).
func (e *Env) SetCompleted(stage string) {
	e.addName(CompletedStageSet, stage)
	if e.Get(e.Value(FailedStages).Raw, stage).Kind != Absent {
		e.SetMember(FailedStages, stage, nil)
	}
}

// SetFailed notes that a stage failed, and why (envelope D31).
func (e *Env) SetFailed(stage string, why []byte) {
	e.SetMember(FailedStages, stage, e.keep(encodeText(e.arena, e.form, why)))
}

// addName adds a name to a set, in the way the set is written: a new one as the shape has it, a map
// in the flat shape and a list in the nested one.
func (e *Env) addName(k Key, name string) {
	v := e.Value(k)
	if v.Kind == List || v.Kind != Map && e.shape == Nested {
		if v.Kind == List && e.hasText(v, name) {
			return
		}
		e.appendElement(k, e.keep(encodeText(e.arena, e.form, name)))
		return
	}
	if e.Get(v.Raw, name).true() {
		return
	}
	e.SetMember(k, name, appendBool(nil, e.form, true))
}

func (e *Env) hasText(list Value, name string) bool {
	it := openList(e.form, list.Raw)
	for it.next() {
		if s, ok := e.Str(it.v); ok && string(s) == name {
			return true
		}
	}
	return false
}
