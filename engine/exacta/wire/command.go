package wire

// Command is a command of the catalogue (exacta §4).
type Command uint8

// The commands.
const (
	NoCommand Command = iota
	OpenProject
	CloseProject
	ExtractIntent
	GeneratePlan
	ValidatePlan
	ApprovePlan
	RejectPlan
	ExecutePlan
	Pause
	Resume
	Cancel
	ApplyDiffSet
	Build
	Preview
	ExportDiagnostics
	Commands // how many there are, NoCommand included
)

// String returns the name of the command.
func (c Command) String() string {
	switch c {
	case OpenProject:
		return "OpenProject"
	case CloseProject:
		return "CloseProject"
	case ExtractIntent:
		return "ExtractIntent"
	case GeneratePlan:
		return "GeneratePlan"
	case ValidatePlan:
		return "ValidatePlan"
	case ApprovePlan:
		return "ApprovePlan"
	case RejectPlan:
		return "RejectPlan"
	case ExecutePlan:
		return "ExecutePlan"
	case Pause:
		return "Pause"
	case Resume:
		return "Resume"
	case Cancel:
		return "Cancel"
	case ApplyDiffSet:
		return "ApplyDiffSet"
	case Build:
		return "Build"
	case Preview:
		return "Preview"
	case ExportDiagnostics:
		return "ExportDiagnostics"
	}
	return ""
}

// commandOf returns the command of a name. It does not allocate.
func commandOf(name []byte) Command {
	for c := NoCommand + 1; c < Commands; c++ {
		if string(name) == c.String() {
			return c
		}
	}
	return NoCommand
}

// Type is the type of a message from a client (exacta §3.2).
type Type uint8

// The types. An ack of a client is never answered, whatever else is wrong with it.
const (
	Request Type = iota
	Subscribe
	Ack
)
