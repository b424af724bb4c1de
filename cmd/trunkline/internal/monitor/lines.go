package monitor

import (
	"bytes"
	"cmp"
	"encoding/json"

	"trunkline/codec/frame"
	"trunkline/engine/connection"
	"trunkline/handlers/ops"
)

// event is the type of a line that answers nothing.
const event = "event"

// lineSize measures lines for connection.Taps. A piece of one, as of a line that is too long, is
// taken as a whole.
func lineSize(_ bool, b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b)
}

// readLine reads a line of JSON of any of the protocols that have them. Its payload is the line.
func readLine(f *ops.Frame, s *connection.Seen) (body []byte, whole bool) {
	body = bytes.TrimSpace(s.Head)
	var id, requestID, method, kind, name string
	failed := false
	object, whole := eachMember(body, func(key string, value json.RawMessage, _ []byte) {
		switch key {
		case "id":
			id = lineID(value)
		case "request_id":
			requestID = lineID(value)
		case "aid", "method", "command":
			method = frameName(value)
		case "type":
			kind = frameName(value)
		case event:
			name = frameName(value)
		case "ok":
			failed = string(value) == "false"
		case "error":
			f.Code = codeOf(value)
		}
	})
	if !object {
		return nil, false
	}
	f.ID = cmp.Or(id, requestID)
	switch {
	case !s.Out:
		f.Type, f.Method = frameTypes[frame.Request], cmp.Or(method, kind)
	case kind == event:
		f.Type, f.Method = event, name
	case failed:
		f.Type = frameTypes[frame.Error]
	default:
		f.Type = frameTypes[frame.Response]
	}
	return body, whole
}

// lineID is an id, which is a string or a number, as text.
func lineID(value json.RawMessage) string {
	var number json.Number
	if json.Unmarshal(value, &number) == nil && len(value) > 0 && value[0] != '"' {
		return shorten(number.String())
	}
	return frameName(value)
}
