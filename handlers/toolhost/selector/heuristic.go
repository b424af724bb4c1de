package selector

import "strings"

// stageTools gives the tool that each stage of making a new tool calls for (toolhost §4.8, rule 1).
var stageTools = [...]struct{ stage, aid string }{
	{"", "AID.GENESIS.WRITE_FILE.v1"},
	{"WROTE", "AID.GENESIS.COMPILE_SHARED.v1"},
	{"COMPILED", "AID.GENESIS.LOAD_PLUGIN.v1"},
}

// tagOrder is the order in which tags are tried when nothing else decides (toolhost §4.8, rule 4).
var tagOrder = [...]string{"tag.error", "tag.gpu", "tag.fs", "tag.shell", "tag.net", tagMeta}

// heuristic chooses by the five rules of toolhost §4.8: the first that fires. It depends on nothing but its arguments.
func heuristic(m menu, goal string, v *view) Selection {
	if strings.Contains(goal, genesis) {
		if it := m.forStage(v.stage); it != nil {
			return picked(it)
		}
		if v.stage == "LOADED" {
			if it := m.tagged(tagRuntime); it != nil && !v.ds0 {
				return picked(it)
			}
			return noop()
		}
	}
	if v.wantsReport() {
		if it := m.tagged(tagReport); it != nil {
			return picked(it)
		}
	}
	for _, tag := range tagOrder {
		if it := m.tagged(tag); it != nil {
			return picked(it)
		}
	}
	return noop()
}

func (m menu) forStage(stage string) *item {
	for _, st := range stageTools {
		if st.stage == stage {
			return m.aid(st.aid)
		}
	}
	return nil
}

// picked returns the choice of an item, with the text a selector would have sent.
func picked(it *item) Selection {
	return Selection{Kind: Pick, SID: it.sid, Raw: "<PICK><" + it.sid + "><END>"}
}

func noop() Selection { return Selection{Kind: Noop, Raw: "<NOOP><END>"} }
