package envelope

// Key is a member of an envelope that the model knows (envelope §3.1).
type Key uint8

// The members in the order of the table of envelope §3.2, then the ones that only some dialects
// use.
const (
	EnvelopeID Key = iota
	RequestID
	UserID
	SessionID
	RawInput
	ReceivedAt
	Outputs
	CurrentStage
	StageOrder
	Iteration
	MaxIterations
	LLMCallCount
	MaxLLMCalls
	AgentHopCount
	MaxAgentHops
	TerminalReason
	Terminated
	TerminationReason
	ClarificationPending
	ClarificationQuestion
	ClarificationResponse
	ConfirmationPending
	ConfirmationID
	ConfirmationMessage
	ConfirmationResponse
	CompletedStages
	CurrentStageNumber
	MaxStages
	AllGoals
	RemainingGoals
	GoalCompletionStatus
	PriorPlans
	LoopFeedback // critic_feedback in the flat shape
	ProcessingHistory
	Errors
	CompletedAt
	Metadata
	InterruptPending
	Interrupt
	ActiveStages
	CompletedStageSet
	FailedStages
	ParallelMode
	ToolCallCount
	TokensIn
	TokensOut
	CreatedAt

	numKeys
	noKey Key = 0xff
)

// flatKeys is how many keys the table of envelope §3.2 has: every reply of boundary A in the flat
// shape holds all of them.
const flatKeys = InterruptPending

// group is the map of the nested shape that a member lives in.
type group uint8

const (
	identity group = iota
	pipeline
	bounds
	interrupts
	execution
	audit
	numGroups
	top     group = 0xfe // beside the groups
	noGroup group = 0xff // only in the flat shape
)

var groupNames = [numGroups]string{"identity", "pipeline", "bounds", "interrupts", "execution", "audit"}

// class is how a member's value is typed.
type class uint8

const (
	text        class = iota // str, default in info.def
	nullText                 // str or null
	identifier               // text of at most wire.MaxIdentifier bytes
	moment                   // time
	nullMoment               // time or null
	counter                  // i32
	wideCounter              // i64
	flag                     // bool
	nullFlag                 // bool or null
	texts                    // list of str
	stageSet                 // map of name to bool, or list of names
	objects                  // list of maps
	opaqueMap                // map
	textMap                  // map of str
	outputMap                // map of maps
	nullMap                  // map or null
)

type info struct {
	flat, nested string
	group        group
	class        class
	min          int64  // of a counter at boundary A
	def          int64  // of a counter
	defText      []byte // of a text
	omitEmpty    bool   // the nested shape leaves it out rather than show it empty
}

var infos = [numKeys]info{
	EnvelopeID:            {flat: "envelope_id", group: identity, class: identifier},
	RequestID:             {flat: "request_id", group: identity, class: identifier},
	UserID:                {flat: "user_id", group: identity, class: identifier, defText: []byte("anonymous")},
	SessionID:             {flat: "session_id", group: identity, class: identifier},
	RawInput:              {flat: "raw_input", group: top, class: text},
	ReceivedAt:            {flat: "received_at", group: top, class: moment},
	Outputs:               {flat: "outputs", group: top, class: outputMap},
	CurrentStage:          {flat: "current_stage", group: pipeline, class: text, defText: []byte("start")},
	StageOrder:            {flat: "stage_order", group: pipeline, class: texts},
	Iteration:             {flat: "iteration", group: pipeline, class: counter},
	MaxIterations:         {flat: "max_iterations", group: pipeline, class: counter, min: 1, def: 3},
	LLMCallCount:          {flat: "llm_call_count", group: bounds, class: counter},
	MaxLLMCalls:           {flat: "max_llm_calls", group: bounds, class: counter, min: 1, def: 10},
	AgentHopCount:         {flat: "agent_hop_count", group: bounds, class: counter},
	MaxAgentHops:          {flat: "max_agent_hops", group: bounds, class: counter, min: 1, def: 21},
	TerminalReason:        {flat: "terminal_reason", group: bounds, class: nullText, omitEmpty: true},
	Terminated:            {flat: "terminated", group: bounds, class: flag},
	TerminationReason:     {flat: "termination_reason", group: bounds, class: nullText, omitEmpty: true},
	ClarificationPending:  {flat: "clarification_pending", group: noGroup, class: flag},
	ClarificationQuestion: {flat: "clarification_question", group: noGroup, class: nullText},
	ClarificationResponse: {flat: "clarification_response", group: noGroup, class: nullText},
	ConfirmationPending:   {flat: "confirmation_pending", group: noGroup, class: flag},
	ConfirmationID:        {flat: "confirmation_id", group: noGroup, class: nullText},
	ConfirmationMessage:   {flat: "confirmation_message", group: noGroup, class: nullText},
	ConfirmationResponse:  {flat: "confirmation_response", group: noGroup, class: nullFlag},
	CompletedStages:       {flat: "completed_stages", group: execution, class: objects},
	CurrentStageNumber:    {flat: "current_stage_number", group: execution, class: counter, min: 1, def: 1},
	MaxStages:             {flat: "max_stages", group: execution, class: counter, min: 1, def: 5},
	AllGoals:              {flat: "all_goals", group: execution, class: texts},
	RemainingGoals:        {flat: "remaining_goals", group: execution, class: texts},
	GoalCompletionStatus:  {flat: "goal_completion_status", group: execution, class: textMap},
	PriorPlans:            {flat: "prior_plans", group: execution, class: objects},
	LoopFeedback:          {flat: "critic_feedback", nested: "loop_feedback", group: execution, class: texts},
	ProcessingHistory:     {flat: "processing_history", group: audit, class: objects},
	Errors:                {flat: "errors", group: audit, class: objects},
	CompletedAt:           {flat: "completed_at", group: audit, class: nullMoment, omitEmpty: true},
	Metadata:              {flat: "metadata", group: audit, class: opaqueMap},
	InterruptPending:      {flat: "interrupt_pending", group: interrupts, class: flag},
	Interrupt:             {flat: "interrupt", group: interrupts, class: nullMap, omitEmpty: true},
	ActiveStages:          {flat: "active_stages", group: pipeline, class: stageSet, omitEmpty: true},
	CompletedStageSet:     {flat: "completed_stage_set", group: pipeline, class: stageSet, omitEmpty: true},
	FailedStages:          {flat: "failed_stages", group: pipeline, class: textMap, omitEmpty: true},
	ParallelMode:          {flat: "parallel_mode", group: pipeline, class: flag},
	ToolCallCount:         {flat: "tool_call_count", group: bounds, class: counter},
	TokensIn:              {flat: "tokens_in", group: bounds, class: wideCounter},
	TokensOut:             {flat: "tokens_out", group: bounds, class: wideCounter},
	CreatedAt:             {flat: "created_at", group: audit, class: moment},
}

// String returns the key's name in the flat shape.
func (k Key) String() string {
	if k < numKeys {
		return infos[k].flat
	}
	return "unknown"
}

// name returns the key's name in a shape.
func (k Key) name(s Shape) string {
	if i := &infos[k]; s == Nested && i.nested != "" {
		return i.nested
	}
	return infos[k].flat
}

// Old and newer names of the flat shape.
const (
	dagMode      = "dag_mode"      // of ParallelMode
	loopFeedback = "loop_feedback" // of LoopFeedback
)

// flatAdded lists what a flat envelope of boundary B gets added when missing, in this order
// (envelope §3.1).
var flatAdded = [...]Key{CurrentStage, StageOrder, Iteration, MaxIterations, LLMCallCount, MaxLLMCalls, AgentHopCount, MaxAgentHops,
	Terminated, TerminalReason, TerminationReason, InterruptPending, Outputs, Metadata}

// nestedAdded is the same for the nested shape, beside its groups; allFlat for the flat shape of
// boundary A.
var (
	nestedAdded = [...]Key{RawInput, ReceivedAt, Outputs}
	allFlat     = func() (keys [flatKeys]Key) {
		for k := range flatKeys {
			keys[k] = k
		}
		return keys
	}()
)

// nestedKeys lists the members of each group in the order in which missing ones are added.
var nestedKeys = [numGroups][]Key{
	identity: {EnvelopeID, RequestID, UserID, SessionID},
	pipeline: {CurrentStage, StageOrder, Iteration, MaxIterations, ActiveStages, CompletedStageSet, FailedStages, ParallelMode},
	bounds: {LLMCallCount, MaxLLMCalls, ToolCallCount, AgentHopCount, MaxAgentHops, TokensIn, TokensOut,
		Terminated, TerminalReason, TerminationReason},
	interrupts: {InterruptPending, Interrupt},
	execution:  {CompletedStages, CurrentStageNumber, MaxStages, AllGoals, RemainingGoals, GoalCompletionStatus, PriorPlans, LoopFeedback},
	audit:      {ProcessingHistory, Errors, CreatedAt, CompletedAt, Metadata},
}

// knownName is a name that means something in an envelope, and where it does.
type knownName struct {
	name  string
	key   Key   // noKey for a group's name
	group group // the group of that name, else noGroup
	flat  bool  // at the top of the flat shape
	top   bool  // at the top of the nested shape
	in    group // the group of the nested shape that has it as a member, else noGroup
}

// numNames counts the keys, the two other names that some of them have, and the groups.
const numNames = int(numKeys) + 2 + int(numGroups)

// nameIndex finds known names with one comparison: the hash is perfect, which a test checks.
type nameIndex struct {
	names [numNames]knownName
	at    [256]uint8 // by hash: one more than the index into names
}

var names = indexNames()

func indexNames() (x nameIndex) {
	add := func(i int, n knownName) {
		x.names[i] = n
		x.at[nameHash(n.name)] = uint8(i + 1)
	}
	for k := range numKeys {
		n := knownName{name: infos[k].flat, key: k, group: noGroup, flat: true, in: noGroup}
		if n.top = infos[k].group == top; !n.top && infos[k].nested == "" {
			n.in = infos[k].group
		}
		add(int(k), n)
	}
	add(int(numKeys), knownName{name: dagMode, key: ParallelMode, group: noGroup, flat: true, in: noGroup})
	add(int(numKeys)+1, knownName{name: loopFeedback, key: LoopFeedback, group: noGroup, flat: true, in: execution})
	for g, name := range groupNames {
		add(int(numKeys)+2+g, knownName{name: name, key: noKey, group: group(g), top: true, in: noGroup})
	}
	return x
}

func nameHash[T ~string | ~[]byte](name T) uint8 {
	n := len(name)
	return uint8(n)*82 + name[0]*235 + name[n-1]*187 + name[n/2]*84
}

var noName = knownName{key: noKey, group: noGroup, in: noGroup}

// findName returns what a name means; an unknown name has no meaning anywhere.
func findName(name []byte) *knownName {
	if len(name) == 0 {
		return &noName
	}
	if i := names.at[nameHash(name)]; i > 0 && names.names[i-1].name == string(name) {
		return &names.names[i-1]
	}
	return &noName
}

// old reports whether n is not the usual name of its key in the flat shape.
func (n *knownName) old() bool { return n.flat && n.name != infos[n.key].flat }

// Known reports whether name is a member that an envelope of either shape may have at its top
// (envelope §3.1).
func Known(name []byte) bool {
	n := findName(name)
	return n.flat || n.top
}
