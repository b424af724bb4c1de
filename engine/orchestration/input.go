package orchestration

import (
	"bytes"

	"trunkline/codec/jsonx"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/engine/envelope"
)

// mapField returns the encoded value of a field that is a map, or JSON text of one (envelope §3.1);
// text is where that is turned into MessagePack. kind begins the refusal of text that is not JSON.
func (c *Call) mapField(v mpack.Value, field, kind string, text *[]byte) (raw []byte, code wire.Code) {
	switch v.Kind {
	case mpack.Map:
		return v.Data, wire.OK
	case mpack.Absent, mpack.Nil:
		return nil, c.refuse(wire.InvalidArgument, "Missing required field: ", []byte(field), "")
	case mpack.Str:
	default:
		return nil, c.refuse(wire.InvalidArgument, field, nil, " must be an object")
	}
	c.Work += len(v.Data)
	data := jsonx.TrimBOM(v.Data)
	if p := jsonx.Check(data, jsonx.MaxDepth); !p.OK() {
		c.refuse(wire.InvalidArgument, kind, nil, "Invalid JSON: ")
		c.Msg = p.Append(c.Msg)
		return nil, wire.InvalidArgument
	}
	*text = transcode.AppendMsgPack((*text)[:0], data)
	return *text, wire.OK
}

const invalidEnvelope = "Invalid envelope: "

// Replies may nest as deep as requests (wire.MaxMsgpackDepth), and hold what came in a request
// inside of more.
const (
	aroundEnvelope = 2                  // the reply and its body
	aroundOutput   = aroundEnvelope + 2 // the envelope and its outputs
	tooDeep        = " nests too deep: its reply would have more than 512 levels"
)

// reshaped is how many levels at most an envelope gets while it is decoded and encoded anew: a
// member moves into a section.
const reshaped = 2

// shallow refuses the envelope in c.buf, made of c.env, if its replies would nest too deep to be
// read back.
func (c *Call) shallow() wire.Code {
	if c.levels > 0 && c.levels <= wire.MaxMsgpackDepth-aroundEnvelope-reshaped || c.scan.Fits(c.buf, aroundEnvelope) {
		return wire.OK
	}
	return c.refuse(wire.InvalidArgument, "envelope", nil, tooDeep)
}

// decode reads an envelope into c.env.
func (c *Call) decode(raw []byte) wire.Code {
	c.Work += len(raw)
	c.levels = 0
	if p := c.env.Decode(envelope.MsgPack, raw); p != nil {
		return c.refuse(wire.InvalidArgument, invalidEnvelope, nil, p.Message())
	}
	return wire.OK
}

// envelopeField reads the field envelope into c.env.
func (c *Call) envelopeField(v mpack.Value) wire.Code {
	raw, code := c.mapField(v, "envelope", invalidEnvelope, &c.text)
	if code != wire.OK {
		return code
	}
	code = c.decode(raw)
	if v.Kind == mpack.Map {
		c.levels = int(v.Int)
	}
	return code
}

// pipelineField reads the field pipeline_config; source is a copy of it as MessagePack, if that is
// to be kept.
func (c *Call) pipelineField(v mpack.Value, keep bool) (p *Pipeline, source []byte, code wire.Code) {
	raw, code := c.mapField(v, "pipeline_config", "Invalid pipeline_config: ", &c.text)
	if code != wire.OK {
		return nil, nil, code
	}
	if mpack.KindOf(raw) != mpack.Map {
		return nil, nil, c.invalid("Invalid pipeline_config: must be an object")
	}
	p, refusal := ParsePipeline(raw)
	if refusal != "" {
		return nil, nil, c.invalid(refusal)
	}
	if keep {
		source = bytes.Clone(raw)
	}
	return p, source, wire.OK
}

// encode writes c.env, completed, into c.buf.
func (o *Engine) encode(c *Call) {
	c.env.Fill(c.wall(), o.cfg.NewID)
	c.buf = c.env.Append(c.buf[:0])
	c.Work += 2 * len(c.buf) // nearly all of it was decoded before
}
