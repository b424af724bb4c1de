// Package codec is the text of exacta: it scans messages of clients in place and appends what a
// server sends (exacta §3), with its identifiers (§6.2) and times (§6.3).
//
//	line ─► Scanner.Scan ─► Message{type, command, ids, payload} or Refusal (§3.6, steps 1 to 12)
//
//	{"ipc_version":"1.0","type":"response","request_id":…,"correlation_id":…,"sent_at":…,
//	 "ok":…,"result":…,"error":…}
//	{"ipc_version":"1.0","type":"event","event":…,"event_id":…,"sent_at":…,"request_id":…,
//	 "correlation_id":…,"seq":…,"project_id":…,"stream_seq":…,"payload":…}
//
// Views point into the line and are valid as long as it is. What appends allocates only where the
// destination has no room.
package codec

import (
	"strings"

	"trunkline/codec/jsonx"
)

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

var commandNames = [Commands]string{
	OpenProject:       "OpenProject",
	CloseProject:      "CloseProject",
	ExtractIntent:     "ExtractIntent",
	GeneratePlan:      "GeneratePlan",
	ValidatePlan:      "ValidatePlan",
	ApprovePlan:       "ApprovePlan",
	RejectPlan:        "RejectPlan",
	ExecutePlan:       "ExecutePlan",
	Pause:             "Pause",
	Resume:            "Resume",
	Cancel:            "Cancel",
	ApplyDiffSet:      "ApplyDiffSet",
	Build:             "Build",
	Preview:           "Preview",
	ExportDiagnostics: "ExportDiagnostics",
}

// String returns the name of the command.
func (c Command) String() string {
	if c >= Commands {
		return ""
	}
	return commandNames[c]
}

// commandOf returns the command of a name. It does not allocate.
func commandOf(name []byte) Command {
	for c := NoCommand + 1; c < Commands; c++ {
		if string(name) == commandNames[c] {
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

// AppendText appends a string with the escapes of exacta §3.1: those of jsonx.AppendString, and
// the two separators of lines, which end a line of JavaScript.
func AppendText(dst []byte, text string) []byte {
	if !strings.Contains(text, "\u2028") && !strings.Contains(text, "\u2029") {
		return jsonx.AppendString(dst, text)
	}
	dst = append(dst, '"')
	for text != "" {
		n := strings.IndexAny(text, "\u2028\u2029")
		if n < 0 {
			n = len(text)
		}
		end := len(dst)
		dst = jsonx.AppendString(dst, text[:n])
		dst = append(dst[:end], dst[end+1:len(dst)-1]...) // without the quotes
		if text = text[n:]; text != "" {
			dst = append(dst, `\u202`...)
			dst = append(dst, text[2]-0xa8+'8')
			text = text[3:]
		}
	}
	return append(dst, '"')
}

// AppendTexts appends an array of strings.
func AppendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendText(dst, s)
	}
	return append(dst, ']')
}
