package envelope

// flatOnly lists the members whose value in the flat shape the nested one says in another way, or leaves out.
var flatOnly = [...]Key{TerminalReason, TerminationReason,
	ClarificationPending, ClarificationQuestion, ClarificationResponse,
	ConfirmationPending, ConfirmationID, ConfirmationMessage, ConfirmationResponse}

func isFlatOnly(k Key) bool {
	for _, other := range flatOnly {
		if k == other {
			return true
		}
	}
	return false
}

// questions holds the members of flatOnly.
type questions [numKeys]field

// tell returns what a nested envelope says about the members of flatOnly; raw is nil for those it says nothing about.
func (x *crossing) tell() (q questions) {
	if v := x.Value(TerminationReason); v.Kind == String && len(x.Text(TerminationReason)) > 0 {
		q[TerminationReason] = x.f[TerminationReason]
	}
	pending, raw := x.Bool(InterruptPending), x.Value(Interrupt).Raw
	response := x.Get(raw, "response").Raw
	name, _ := x.Str(x.Get(raw, "kind"))
	kind := ParseInterruptKind(name)
	switch kind {
	case Clarification:
		q[ClarificationPending] = x.told(ClarificationPending, pending)
		q[ClarificationQuestion] = x.read(x.Get(raw, "question"), String)
		q[ClarificationResponse] = x.read(x.Get(response, "text"), String)
	case Confirmation:
		q[ConfirmationPending] = x.told(ConfirmationPending, pending)
		q[ConfirmationID] = x.read(x.Get(raw, "id"), String)
		q[ConfirmationMessage] = x.read(x.Get(raw, "message"), String)
		q[ConfirmationResponse] = x.read(x.Get(response, "approved"), Bool)
	}
	q[TerminalReason] = x.toldReason(pending, kind)
	return q
}

// toldReason is the reason to show in the flat shape: the nested one leaves out why an envelope of boundary A waits.
func (x *crossing) toldReason(pending bool, kind InterruptKind) field {
	r := x.Reason()
	switch {
	case r != NoReason && (x.Bool(Terminated) || !r.waits() || x.shape == Nested):
		return x.f[TerminalReason]
	case x.form == MsgPack || x.Bool(Terminated) || !pending:
		return field{}
	case kind == Clarification:
		return x.encodedText(ClarificationRequired.Exchange())
	case kind == Confirmation:
		return x.encodedText(ConfirmationRequired.Exchange())
	}
	return field{}
}

func (x *crossing) told(k Key, v bool) field {
	if !v {
		return field{}
	}
	return field{raw: appendBool(nil, x.form, true), n: 1, kind: Bool}
}

func (x *crossing) encodedText(s string) field {
	return field{raw: encodeText(nil, x.form, s), text: []byte(s), kind: String}
}

// read returns v as a field's value if it is of the kind wanted.
func (x *crossing) read(v Value, want Kind) (f field) {
	if v.Kind != want {
		return field{}
	}
	f = field{raw: v.Raw, kind: v.Kind}
	f.text, _ = x.Str(v)
	if v.True() {
		f.n = 1
	}
	return f
}

// same reports whether two values of a member mean the same: nothing and null are one, and so is false where null is none.
func (x *crossing) same(k Key, a, b *field) bool {
	switch infos[k].class {
	case flag:
		return a.n == b.n
	case nullFlag:
		return a.n == b.n && (a.kind == Bool) == (b.kind == Bool)
	}
	if (a.kind == String) != (b.kind == String) {
		return false
	}
	if r := ParseReason(a.text); k == TerminalReason && r != OtherReason {
		return r == ParseReason(b.text)
	}
	return string(a.text) == string(b.text)
}

// makeInterrupt makes the interrupt that the flat questions stand for, if there is none: the pending one, else the one that was
// answered. What the flat keys do not say it does not have.
func (x *crossing) makeInterrupt() {
	if x.Value(Interrupt).Kind == Map {
		return
	}
	asks, approves := x.Bool(ClarificationPending), x.Bool(ConfirmationPending)
	if x.f[InterruptPending].raw == nil && (asks || approves) {
		x.f[InterruptPending] = x.told(InterruptPending, true)
	}
	var kind InterruptKind
	switch {
	case x.Bool(InterruptPending) && asks:
		kind = Clarification
	case x.Bool(InterruptPending) && approves:
		kind = Confirmation
	case x.Bool(InterruptPending):
		return // for something else
	case x.Text(ClarificationQuestion) != nil || x.Text(ClarificationResponse) != nil:
		kind = Clarification
	case x.Text(ConfirmationID) != nil || x.Text(ConfirmationMessage) != nil || x.Value(ConfirmationResponse).Kind == Bool:
		kind = Confirmation
	default:
		return
	}
	x.f[Interrupt] = field{raw: x.interruptOf(kind), kind: Map}
}

// interruptOf encodes the flat questions of a kind.
func (x *crossing) interruptOf(kind InterruptKind) []byte {
	list := []pair{{name: "kind", raw: encodeText(nil, x.form, kind.String())}}
	add := func(name string, v Value) {
		if v.Kind == String || v.Kind == Bool {
			list = append(list, pair{name: name, raw: v.Raw})
		}
	}
	response, member := ClarificationResponse, "text"
	if kind == Confirmation {
		response, member = ConfirmationResponse, "approved"
		add("id", x.Value(ConfirmationID))
		add("message", x.Value(ConfirmationMessage))
	} else {
		add("question", x.Value(ClarificationQuestion))
	}
	if v := x.Value(response); v.Kind == String || v.Kind == Bool {
		list = append(list, pair{name: "response", raw: appendMap(nil, x.form, []pair{{name: member, raw: v.Raw}})})
	}
	return appendMap(nil, x.form, list)
}

// respell spells the reason as a shape has it; boundary B spells it one way only.
func (x *crossing) respell(s Shape) {
	r := x.Reason()
	if r == NoReason || r == OtherReason || x.form == MsgPack {
		return
	}
	spelling := r.Wire()
	if s == Flat {
		spelling = r.Exchange()
	}
	x.f[TerminalReason] = x.encodedText(spelling)
}
