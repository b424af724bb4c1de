package envelope

// SetCompleted notes that a stage succeeded: it joins completed_stage_set and leaves failed_stages
// (envelope §5.2).
func (e *Env) SetCompleted(stage string) {
	e.addName(CompletedStageSet, stage)
	if e.Value(FailedStages).Kind == Map {
		e.removeMember(FailedStages, stage)
	}
}

// SetFailed notes that a stage failed, and why (envelope D31).
func (e *Env) SetFailed(stage string, why []byte) {
	start := len(e.arena)
	e.arena = encodeText(e.arena, e.form, why)
	e.SetMember(FailedStages, stage, e.arena[start:len(e.arena):len(e.arena)])
}

// addName adds a name to a set, in the way the set is written: a new one as the shape has it, a map
// in the flat shape and a list in the nested one.
func (e *Env) addName(k Key, name string) {
	v := e.Value(k)
	if v.Kind == List || v.Kind != Map && e.shape == Nested {
		if v.Kind == List && e.hasText(v, name) {
			return
		}
		start := len(e.arena)
		e.arena = encodeText(e.arena, e.form, name)
		e.appendElement(k, e.arena[start:len(e.arena):len(e.arena)])
		return
	}
	if e.Get(v.Raw, name).true() {
		return
	}
	e.SetMember(k, name, appendBool(nil, e.form, true))
}

func (e *Env) hasText(list Value, name string) bool {
	for it := openList(e.form, list.Raw); ; {
		v, ok := it.next()
		if !ok {
			return false
		}
		if s, isText := e.Str(v); isText && string(s) == name {
			return true
		}
	}
}

// removeMember takes a member out of a map member.
func (e *Env) removeMember(k Key, name string) {
	v := e.Value(k)
	if e.Get(v.Raw, name).Kind == Absent {
		return
	}
	list := e.scratch[:0]
	for it := openMap(e.form, v.Raw); ; {
		spelled, key, el, ok := it.next()
		if !ok {
			break
		}
		if string(e.unescape(key)) != name {
			list = append(list, pair{spelled: spelled, raw: el.Raw})
		}
	}
	start := len(e.arena)
	e.arena = appendMap(e.arena, e.form, list)
	e.scratch = recycle(list)
	e.put(k, Map, start)
}
